"""Tool calls that are streamed in pieces stay the calls that the model made (scenarios A1, A2 and A10)."""

from __future__ import annotations

import re

from provider_wires import on_wires, uses_of
from stream_events import BEGIN, END_WITH_CALLS, args, call, chunk, end, head, said, stop, unindexed, words

from ropewalk_testing import assert_valid_history

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BOTH = [("A", "add", {"a": 1, "b": 2}), ("B", "mul", {"a": 3, "b": 4})]
RUN = [("add", 1, 2), ("mul", 3, 4)]

# -- A1 ----------------------------------------------------------------------------------------------------------

INTERLEAVED = {
    "as reported": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(0), end(1), stop(),
    ],
    "with text between": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"), args(0, '{"a": 1,'), said(2, "I "), args(1, '{"a": 3,'),
        args(0, ' "b": 2}'), said(2, "calculate"), args(1, ' "b": 4}'), end(2), end(0), end(1), stop(),
    ],
    "stops the other way round": [
        BEGIN, head(0, "A", "add"), head(1, "B", "mul"),
        args(0, '{"a": 1,'), args(1, '{"a": 3,'), args(0, ' "b": 2}'), args(1, ' "b": 4}'), end(1), end(0), stop(),
    ],
    "heads the other way round": [
        BEGIN, head(1, "B", "mul"), head(0, "A", "add"),
        args(1, '{"a": 3, "b": 4}'), args(0, '{"a": 1, "b": 2}'), end(1), end(0), stop(),
    ],
    "without stops": [
        BEGIN, head(0, "A", "add"), args(0, '{"a": 1, "b": 2}'), head(1, "B", "mul"), args(1, '{"a": 3, "b": 4}'),
        stop(),
    ],
}  # fmt: skip
INTERLEAVED_CHUNKS = {
    "as reported": [
        call(0, "A", "add", ""), call(1, "B", "mul", ""),
        call(0, arguments='{"a": 1,'), call(1, arguments='{"a": 3,'),
        call(0, arguments=' "b": 2}'), call(1, arguments=' "b": 4}'), *END_WITH_CALLS,
    ],
    "with text between": [
        call(0, "A", "add", ""), call(1, "B", "mul", ""), call(0, arguments='{"a": 1,'), words("I "),
        call(1, arguments='{"a": 3,'), call(0, arguments=' "b": 2}'), words("calculate"),
        call(1, arguments=' "b": 4}'), *END_WITH_CALLS,
    ],
    "two in one piece": [
        chunk({"tool_calls": [
            {"index": 0, "id": "A", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}},
            {"index": 1, "id": "B", "type": "function", "function": {"name": "mul", "arguments": '{"a": 3, "b": 4}'}},
        ]}),
        *END_WITH_CALLS,
    ],
}  # fmt: skip


@on_wires(INTERLEAVED, INTERLEAVED_CHUNKS)
def test_interleaved_tool_blocks_stay_two_calls(ask, provider, calls, calculators, events):
    """Scenario A1."""
    agent, server = provider.make([provider.stream(events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == RUN
    assert [(u["toolUseId"], u["name"], u["input"]) for u in uses_of(agent.messages[1])] == BOTH
    assert provider.sent_calls(server) == BOTH
    texts = [block["text"] for block in agent.messages[1]["content"] if "text" in block]
    assert texts == (["I calculate"] if "calculate" in str(events) else [])
    assert_valid_history(agent.messages)


# -- A2 ----------------------------------------------------------------------------------------------------------

ADD, MUL, REST = '{"a":1,"b":2}', '{"a":3,', '"b":4}'
MISNUMBERED = {
    "a new id at a known index": [
        BEGIN, head(0, "A", "add"), args(0, ADD), head(0, "B", "mul"), args(0, MUL), args(0, REST), end(0), stop(),
    ],
    "a fragment at an unknown index": [
        BEGIN, head(0, "A", "add"), args(0, ADD), head(0, "B", "mul"), args(0, '{"a":3,"b":'), args(1, "4}"), stop(),
    ],
    "no index": [
        BEGIN, *map(unindexed, (head(0, "A", "add"), args(0, '{"a":1,'), args(0, '"b":2}'))),
        *map(unindexed, (head(1, "B", "mul"), args(1, MUL), args(1, REST))), stop(),
    ],
}  # fmt: skip
MISNUMBERED_CHUNKS = {
    "a: a repeated index": [call(0, "A", "add", ADD), call(0, "B", "mul", MUL), call(1, arguments=REST)],
    "b: heads without index": [call(None, "A", "add", ADD), call(None, "B", "mul", MUL), call(1, arguments=REST)],
    "b: no index at all": [
        call(use_id="A", name="add", arguments=ADD),
        call(use_id="B", name="mul", arguments=MUL),
        call(arguments=REST),
    ],
    "b: the index is forgotten": [call(0, "A", "add", ADD), call(1, "B", "mul", MUL), call(None, arguments=REST)],
    "c: interleaved": [
        call(0, "A", "add", '{"a":1'),
        call(1, "B", "mul", MUL),
        call(0, arguments=',"b":2}'),
        call(1, arguments=REST),
    ],
    "a known id at another index": [call(0, "A", "add", ADD), call(1, "B", "mul", MUL), call(0, "B", None, REST)],
    "id and name in every piece": [
        call(0, "A", "add", '{"a":1'),
        call(0, "A", "add", ',"b":2}'),
        call(1, "B", "mul", MUL),
        call(1, "B", "mul", REST),
    ],
}


def ended(chunks):
    return {name: [*pieces, *END_WITH_CALLS] for name, pieces in chunks.items()}


@on_wires(MISNUMBERED, ended(MISNUMBERED_CHUNKS))
def test_calls_do_not_merge_when_the_index_is_wrong(ask, provider, calls, calculators, events):
    """Scenario A2."""
    agent, server = provider.make([provider.stream(events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == RUN
    assert provider.sent_calls(server) == BOTH
    assert_valid_history(agent.messages)


NOTHING = {
    "null": [BEGIN, head(0, "A", "add"), args(0, None), args(0, ADD), args(0, None), end(0), head(1, "B", "mul"),
             args(1, MUL), args(1, None), args(1, REST), end(1), stop()],
    "blank": [BEGIN, head(0, "A", "add"), args(0, ""), args(0, ADD), end(0), head(1, "B", "mul"), args(1, MUL),
              args(1, ""), args(1, REST), end(1), stop()],
}  # fmt: skip
NOTHING_IN_CHUNKS = {
    kind: [
        call(0, "A", "add", nothing),
        call(0, arguments=ADD),
        call(1, "B", "mul", MUL),
        call(1, arguments=nothing),
        call(1, arguments=REST),
    ]
    for kind, nothing in (("null", None), ("blank", ""))
}


@on_wires(NOTHING, ended(NOTHING_IN_CHUNKS))
def test_a_piece_of_arguments_that_says_nothing_costs_no_call(ask, provider, calls, calculators, events):
    """Scenario A2: clients leave out what is null on the wire."""
    agent, server = provider.make([provider.stream(events), "ok"], tools=calculators, retry_strategy=None)

    ask(agent, "go")

    assert sorted(calls) == RUN
    assert provider.sent_calls(server) == BOTH
    assert_valid_history(agent.messages)


def test_text_without_block_starts_and_indexes_is_kept(ask, scripted):
    """Scenario A2."""
    events = [BEGIN, unindexed(said(0, "half ")), unindexed(said(0, "and half")), stop("end_turn")]
    agent, _ = scripted.make([scripted.stream(events)])

    assert str(ask(agent, "go")) == "half and half\n"


# -- ids ---------------------------------------------------------------------------------------------------------


def headed(start):
    return [BEGIN, {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": start}}}]


ONE_CALL = [args(0, ""), args(0, ADD), end(0), stop()]
HEADS = {
    "no id": [*headed({"name": "add"}), *ONE_CALL],
    "null": [*headed({"name": "add", "toolUseId": None}), *ONE_CALL],
    "an empty id": [*headed({"name": "add", "toolUseId": ""}), *ONE_CALL],
    "an illegal id": [*headed({"name": "add", "toolUseId": "call_1|fc_2"}), *ONE_CALL],
    "a long id": [*headed({"name": "add", "toolUseId": "x" * 80}), *ONE_CALL],
}
HEAD_CHUNKS = {
    "d: id and arguments null": [call(0, None, "add", None), call(0, arguments=ADD)],
    "no id": [call(0, name="add", arguments=""), call(0, arguments=ADD)],
    "an empty id": [call(0, "", "add", ""), call(0, arguments=ADD)],
    "an illegal id": [call(0, "call_1|fc_2", "add", ""), call(0, arguments=ADD)],
    "a long id": [call(0, "x" * 80, "add", ""), call(0, "x" * 80, None, ADD)],
}


@on_wires(HEADS, ended(HEAD_CHUNKS))
def test_a_missing_or_illegal_id_is_replaced_once(ask, provider, calls, calculators, events):
    """Scenarios A2 and A10."""
    agent, server = provider.make([provider.stream(events), "ok"], tools=calculators)

    ask(agent, "go")

    assert calls == [("add", 1, 2)]
    (made,) = [u["toolUseId"] for u in uses_of(agent.messages[1])]
    assert LEGAL_ID.fullmatch(made)
    assert [use_id for use_id, _, _ in provider.sent_calls(server)] == [made]
    assert [use_id for use_id, _, _ in provider.sent_answers(server)] == [made]


def test_a_missing_id_and_null_arguments_are_none_yet(ask, scripted, calls, calculators):
    """Scenario A2 d."""
    events = [*headed({"name": "add", "toolUseId": None}), args(0, None), *ONE_CALL]
    agent, model = scripted.make([scripted.stream(events), "ok"], tools=calculators)

    ask(agent, "go")

    assert calls == [("add", 1, 2)]
    ((made, _, _),) = scripted.sent_calls(model)
    assert LEGAL_ID.fullmatch(made)


NO_IDS = [
    BEGIN, *(
        event
        for index, (name, piece) in enumerate([("add", ADD), ("mul", MUL + REST)])
        for event in (
            {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": {"name": name}}}},
            args(index, piece), end(index),
        )
    ), stop(),
]  # fmt: skip
ONE_ID = [
    BEGIN, head(0, "A", "add"), args(0, ADD), end(0), head(1, "A", "mul"), args(1, MUL + REST), end(1), stop(),
]  # fmt: skip
ID_CHUNKS = {
    "no ids": [call(0, name="add", arguments=ADD), call(1, name="mul", arguments=MUL + REST)],
    "one id": [call(0, "A", "add", ADD), call(1, "A", "mul", MUL + REST)],
}


@on_wires({"no ids": NO_IDS, "one id": ONE_ID}, ended(ID_CHUNKS))
def test_two_calls_have_two_ids(ask, provider, calls, calculators, events):
    """Scenarios A2 and A10."""
    agent, server = provider.make([provider.stream(events), "ok"], tools=calculators)

    ask(agent, "go")

    assert sorted(calls) == RUN
    assert len({use_id for use_id, _, _ in provider.sent_calls(server)}) == 2
    assert_valid_history(agent.messages)
