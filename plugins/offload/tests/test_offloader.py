"""The offloader in agents: what stays, where the rest is, and what is left alone."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk import Agent, ContextWindowOverflowException, MissingPluginError, Refuse, Replace, hookimpl
from ropewalk.kits.messages.estimate import block_tokens
from ropewalk.kits.sessions import SessionManager
from ropewalk_offload import ContextOffloader, FolderStorage, MemoryStorage, StorageError
from ropewalk_offload.preview import AROUND
from ropewalk_testing import MemoryLogStore, ScriptedModel, assert_valid_history, use

BIG = "\n".join(f"line {n}: {'x' * 40}" for n in range(1, 1_001))  # about 12,700 tokens
GET = "retrieve_offloaded_content"


def text_of(result):
    return "".join(piece.get("text", "") for piece in result["content"])


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"max_result_tokens": 1_000}, "max_result_tokens=1000 is not more than preview_tokens=1000"),
        ({"max_result_tokens": 500, "preview_tokens": 600}, "a preview has to be smaller"),
        ({"max_result_tokens": 0, "preview_tokens": 0}, "max_result_tokens=0"),
        ({"preview_tokens": -1}, "preview_tokens=-1"),
        ({"max_result_tokens": "many"}, "max_result_tokens='many'"),
        ({"max_result_tokens": True}, "max_result_tokens=True"),
        ({"evict_after_cycles": 0}, "evict_after_cycles=0"),
        ({"should_offload": "yes"}, "should_offload='yes'"),
        ({"storage": 5}, "storage=5 is no storage"),
        ({"storage": " "}, "storage=' ' is no storage"),
        ({"storage": MemoryStorage}, "is no storage"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_of_another_kind_is_refused_by_name(values, named):
    with pytest.raises(ValueError, match="ContextOffloader") as caught:
        ContextOffloader(**values)

    assert named in str(caught.value)


def test_the_defaults(tmp_path):
    offloader = ContextOffloader()
    assert (offloader.max_result_tokens, offloader.preview_tokens, offloader.evict_after_cycles) == (2_500, 1_000, 20)
    assert ContextOffloader(MemoryStorage()).evict_after_cycles == 20
    assert ContextOffloader(tmp_path).evict_after_cycles is None
    assert ContextOffloader(tmp_path, evict_after_cycles=3).evict_after_cycles == 3
    assert ContextOffloader(evict_after_cycles=None).evict_after_cycles is None


# -- what stays --------------------------------------------------------------------------------------------------------


def test_a_large_result_becomes_a_preview_and_the_tool_reads_the_rest(make_agent, giving, results, reference):
    def script(request):
        answered = [b["toolResult"] for m in request.messages for b in m["content"] if "toolResult" in b]
        if not answered:
            return use("look", {}, id="a")

        if len(answered) == 1:
            return use(GET, {"reference": reference(answered[0]), "line_range": {"start": 500, "end": 501}}, id="b")

        return "done"

    agent = make_agent(ScriptedModel(script), ContextOffloader(), giving(BIG))
    agent("go")

    preview, read = results(agent)
    text = text_of(preview)
    assert preview["status"] == "success"
    assert text.startswith("[Offloaded: 1 text, about ")
    assert "line 1: " in text
    assert "line 1000: " in text
    assert "line 500: " not in text
    assert block_tokens({"text": text}) <= 1_000 + AROUND
    assert text_of(read).splitlines() == [f"{n}: line {n}: {'x' * 40}" for n in (500, 501)]
    assert_valid_history(agent.messages)


@pytest.mark.parametrize("size", [1, 399, 400])
def test_a_result_at_the_limit_stays_as_it_is(make_agent, giving, results, size):
    content = [{"text": "x" * size}]
    agent = make_agent([use("look", {}), "done"], ContextOffloader(None, 100, 10), giving(content))
    agent("go")
    assert results(agent)[0]["content"] == content


def test_a_result_above_the_limit_does_not_stay(make_agent, giving, results, reference):
    agent = make_agent([use("look", {}), "done"], ContextOffloader(None, 200, 10), giving("x" * 801))
    agent("go")
    assert reference(results(agent)[0])


def test_what_would_not_become_smaller_stays(make_agent, giving, results):
    agent = make_agent([use("look", {}), "done"], ContextOffloader(None, 10, 5), giving("x" * 100))
    agent("go")
    assert text_of(results(agent)[0]) == "x" * 100


def test_an_error_result_stays_one(make_agent, giving, results, reference):
    agent = make_agent([use("look", {}), "done"], ContextOffloader(), giving(BIG, status="error"))
    agent("go")
    assert results(agent)[0]["status"] == "error"
    assert reference(results(agent)[0])


def test_one_image_is_shown_and_several_are_kept(make_agent, giving, results, reference):
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 10}}}
    agent = make_agent([use("look", {}), "done"], ContextOffloader(None, 1_500, 750), giving([image]))
    agent("go")
    assert results(agent)[0]["content"] == [image]

    agent = make_agent([use("look", {}), "done"], ContextOffloader(None, 1_500, 750), giving([image] * 3))
    agent("go")
    assert "[piece 2: image, png, 40 bytes]" in text_of(results(agent)[0])
    read = agent.tool.retrieve_offloaded_content(reference=reference(results(agent)[0]))
    assert [piece for piece in read["content"] if "image" in piece] == [image] * 3


def test_json_and_documents_are_kept_as_they_were(make_agent, giving, results, reference):
    content = [
        {"json": {"rows": [{"n": n, "ok": True} for n in range(500)]}},
        {"document": {"format": "pdf", "name": "report", "source": {"bytes": bytes(range(256)) * 4}}},
        {"document": {"format": "csv", "name": "table", "source": {"bytes": b"a,b\n1,2\n"}}},
    ]
    agent = make_agent([use("look", {}), "done"], ContextOffloader(), giving(content))
    agent("go")

    text = text_of(results(agent)[0])
    assert "[Offloaded: 1 JSON value, 2 documents" in text
    assert "[piece 2: document, report, pdf, 1,024 bytes]" in text
    assert "[piece 3: document, table, csv, 8 bytes]\na,b\n1,2\n" in text
    found = reference(results(agent)[0])
    assert agent.tool.retrieve_offloaded_content(reference=found, piece=2)["content"] == [content[1]]
    read = agent.tool.retrieve_offloaded_content(reference=found, pattern='"n": 321', context_lines=1)
    assert [line.split(": ", 1)[1].strip() for line in text_of(read).splitlines()] == ["{", '"n": 321,', '"ok": true']


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    pieces=st.lists(
        st.one_of(
            st.integers(0, 30_000).map(lambda n: {"text": "ab\n" * (n // 3)}),
            st.integers(0, 30_000).map(lambda n: {"text": "x" * n}),
            st.text(max_size=300).map(lambda t: {"text": t}),
            st.integers(0, 300).map(lambda n: {"json": list(range(n))}),
            st.integers(0, 9_000).map(lambda n: {"image": {"format": "png", "source": {"bytes": b"\0" * n}}}),
            st.integers(0, 90_000).map(
                lambda n: {"document": {"format": "txt", "name": "d", "source": {"bytes": b"t" * n}}}
            ),
        ),
        max_size=6,
    ),
    bounds=st.tuples(st.integers(1, 3_000), st.integers(0, 3_000)).filter(lambda pair: pair[0] > pair[1]),
)
def test_whatever_a_tool_gives_fits_the_bounds_and_can_be_read_whole(pieces, bounds):
    most, shown = bounds
    storage = MemoryStorage()

    class Look:
        tool_name = "look"
        tool_spec = {"name": "look", "description": "", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def invoke(self, call):
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": pieces}

    async def run():
        model = ScriptedModel([use("look", {}), "done"])
        agent = Agent(
            model=model,
            tools=[Look()],
            plugins=[ContextOffloader(storage, most, shown)],
            callback_handler=None,
        )
        await agent.invoke_async("go")
        return agent, await storage.list()

    agent, references = asyncio.run(run())
    content = agent.messages[2]["content"][0]["toolResult"]["content"]
    tokens = sum(map(block_tokens, content))
    assert_valid_history(agent.messages)
    if not references:
        assert content == pieces
        first_image = next((1_600 for piece in pieces if "image" in piece), 0)
        assert tokens <= max(most, shown + AROUND) + first_image
    else:
        assert tokens <= shown + AROUND
        assert tokens < sum(map(block_tokens, pieces))
        assert references[0] in content[0]["text"]


@pytest.mark.parametrize(
    "source", [{"text": "row\n" * 9_000}, {"content": [{"text": "row\n" * 9_000}]}], ids=["text", "content"]
)
@pytest.mark.parametrize("kind", ["txt", "pdf"])
def test_a_document_that_holds_text_is_offloaded_and_read_as_text(make_agent, giving, results, reference, source, kind):
    document = {"document": {"format": kind, "name": "report", "source": source}}
    agent = make_agent([use("look", {}), "done"], ContextOffloader(), giving([document]))
    agent("go")
    assert "row\nrow\n" in text_of(results(agent)[0])
    read = agent.tool.retrieve_offloaded_content(
        reference=reference(results(agent)[0]), line_range={"start": 8_000, "end": 8_001}
    )
    assert read["content"] == [{"text": "8000: row\n8001: row"}]


def test_what_should_not_be_offloaded_is_asked_for_large_results_only(make_agent, giving, results, reference):
    asked = []

    async def judge(tool_use, result):
        asked.append((tool_use["toolUseId"], len(text_of(result))))
        return tool_use["toolUseId"] != "keep"

    turns = [use("look", {}, id="keep"), use("look", {}, id="go"), use("look", {}, id="small"), "done"]
    tool = giving(lambda call: "x" if call.tool_use["toolUseId"] == "small" else BIG)
    agent = make_agent(turns, ContextOffloader(should_offload=judge), tool)
    agent("go")

    assert asked == [("keep", len(BIG)), ("go", len(BIG))]
    assert [bool(reference(result)) for result in results(agent)] == [False, True, False]


def test_an_error_in_should_offload_ends_the_run_and_loses_nothing(make_agent, giving, results):
    def broken(tool_use, result):
        raise LookupError("my mistake")

    agent = make_agent([use("look", {}), "done"], ContextOffloader(should_offload=broken), giving(BIG))
    with pytest.raises(LookupError, match="my mistake"):
        agent("go")

    assert text_of(results(agent)[0]) == BIG


@pytest.mark.parametrize(
    "piece",
    [{"document": None}, {"document": {"format": []}}, {"image": 5}, {"video": {}}, {"strange": 1}, {}],
    ids=repr,
)
def test_pieces_of_a_strange_shape_stay_or_are_kept_as_they_are(make_agent, giving, results, reference, piece):
    storage = MemoryStorage()
    agent = make_agent([use("look", {}), "done"], ContextOffloader(storage), giving([piece]))
    agent("go")
    assert results(agent)[0]["content"] == [piece]

    agent = make_agent([use("look", {}), "done"], ContextOffloader(storage), giving([{"text": BIG}, piece]))
    agent("go")
    answer = agent.tool.retrieve_offloaded_content(reference=reference(results(agent)[0]), piece=2)
    assert answer["status"] == "success"


def test_a_result_of_no_shape_is_the_kernels_to_refuse(make_agent, results):
    class Odd:
        tool_name = "look"
        tool_spec = {"name": "look", "description": "", "inputSchema": {"json": {}}}  # noqa: RUF012

        async def invoke(self, call):
            return {"content": "x" * 99_999}

    agent = make_agent([use("look", {}), "done"], ContextOffloader(), Odd())
    agent("go")
    assert "did not return a result" in text_of(results(agent)[0])


def test_a_direct_call_gives_its_caller_everything(make_agent, giving, reference):
    agent = make_agent([], ContextOffloader(), giving(BIG))
    assert text_of(agent.tool.look()) == BIG


def test_a_direct_call_in_a_tool_gives_the_tool_everything(make_agent, giving, results, reference):
    seen = []

    class Outer:
        tool_name = "outer"
        tool_spec = {"name": "outer", "description": "", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def invoke(self, call):
            seen.append(call.agent.tool.look(record_direct_tool_call=False))
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": BIG}]}

    agent = make_agent([use("outer", {}), "done"], ContextOffloader(), giving(BIG), Outer())
    agent("go")
    assert text_of(seen[0]) == BIG
    assert reference(results(agent)[0])


def test_what_the_retrieval_tool_shows_is_not_offloaded_again(make_agent, giving, results, reference):
    storage = MemoryStorage()
    agent = make_agent([use("look", {}), "done"], ContextOffloader(storage), giving(BIG))
    agent("go")
    found = reference(results(agent)[0])
    for name in (GET, "retrieve_context"):
        tool = giving(BIG)
        tool.tool_name = name
        again = make_agent(
            [use(name, {"reference": found}), "done"], ContextOffloader(storage, include_retrieval_tool=False), tool
        )
        again("go")
        assert text_of(results(again)[0]) == BIG


def test_without_the_tool_the_preview_does_not_speak_of_it(make_agent, giving, results):
    agent = make_agent(
        [use("look", {}), "done"], ContextOffloader(MemoryStorage(), include_retrieval_tool=False), giving(BIG)
    )
    agent("go")
    assert agent.tool_names == ["look"]
    assert GET not in text_of(results(agent)[0])


# -- gates, hooks, the log ---------------------------------------------------------------------------------------------


def test_gates_see_the_result_before_it_is_stored(make_agent, giving, results, reference):
    class Masking:
        name = "masking"

        @hookimpl
        async def intervene(self, moment, subject):
            if moment == "after_tool_call" and "secret" in text_of(subject):
                return Replace({**subject, "content": [{"text": text_of(subject).replace("secret", "******")}]})

            return None

    storage = MemoryStorage()
    agent = make_agent(
        [use("look", {}), "done"], ContextOffloader(storage), giving(BIG + " secret"), plugins=[Masking()]
    )
    agent("go")

    data = asyncio.run(storage.read(reference(results(agent)[0])))
    assert b"******" in data
    assert b"secret" not in data


def test_what_a_gate_refuses_is_not_stored(make_agent, giving, results):
    class Refusing:
        name = "refusing"

        @hookimpl
        async def intervene(self, moment, subject):
            return Refuse("no") if moment == "after_tool_call" else None

    storage = MemoryStorage()
    agent = make_agent([use("look", {}), "done"], ContextOffloader(storage), giving(BIG), plugins=[Refusing()])
    agent("go")
    assert text_of(results(agent)[0]) == "DENIED: no"
    assert asyncio.run(storage.list()) == []


def test_hooks_of_other_plugins_see_the_result_itself_and_what_they_make_of_it_is_measured(
    make_agent, giving, results, reference
):
    seen = []

    class Growing:
        name = "growing"

        @hookimpl
        async def around_tool_call(self, call, call_next):
            result = await call_next(call)
            seen.append(text_of(result))
            return {**result, "content": [{"text": BIG}]}

    agent = make_agent([use("look", {}), "done"], ContextOffloader(), giving("small"), plugins=[Growing()])
    agent("go")
    assert seen == ["small"]
    assert reference(results(agent)[0])


def test_the_log_holds_the_result_once_and_the_preview_in_its_message(make_agent, giving, results):
    class Records:
        name = "records"

        def __init__(self):
            self.kinds = []

        @hookimpl
        async def write_records(self, records):
            self.kinds += [(record.kind, BIG in json_text(record.data)) for record in records]

    def json_text(data):
        return str(data).replace("\\n", "\n")

    records = Records()
    agent = make_agent([use("look", {}), "done"], ContextOffloader(), giving(BIG), plugins=[records])
    agent("go")
    assert [kind for kind, big in records.kinds if big] == ["tool_ended"]


# -- storages ----------------------------------------------------------------------------------------------------------


class Keeping:
    """A storage of a user's own."""

    def __init__(self):
        self.items = {}

    async def write(self, key, data):
        self.items[key] = data

    async def read(self, key):
        return self.items.get(key)

    async def delete(self, key):
        return self.items.pop(key, None) is not None

    async def list(self, prefix=""):
        return sorted(self.items)


class Failing:
    """A storage that fails in one way."""

    def __init__(self, error):
        self.error = error

    async def write(self, key, data):
        raise self.error

    async def read(self, key):
        raise self.error

    async def delete(self, key):
        raise self.error

    async def list(self, prefix=""):
        raise self.error


@pytest.mark.parametrize("error", [StorageError("it is full"), OSError("it is gone"), KeyError("bug")], ids=repr)
def test_a_result_that_cannot_be_stored_stays_whole_and_the_log_says_so(make_agent, giving, results, caplog, error):
    agent = make_agent([use("look", {}), "done"], ContextOffloader(Failing(error)), giving(BIG))
    with caplog.at_level(logging.WARNING, "ropewalk.offload"):
        agent("go")

    assert text_of(results(agent)[0]) == BIG
    assert "the result of tool 'look'" in caplog.text
    assert str(error) in caplog.text


def test_a_full_memory_keeps_what_it_has_and_the_next_result_stays_whole(make_agent, giving, results, reference):
    turns = [use("look", {}), use("look", {}), "done"]
    agent = make_agent(turns, ContextOffloader(MemoryStorage(len(BIG) + 2_000)), giving(BIG))
    agent("go")
    first, second = results(agent)
    assert reference(first)
    assert text_of(second) == BIG
    assert text_of(agent.tool.retrieve_offloaded_content(reference=reference(first), piece=1)).startswith("[char")


def test_a_storage_that_is_gone_is_an_error_result_of_the_retrieval(make_agent, caplog):
    agent = make_agent([], ContextOffloader(Failing(OSError("host is down"))))
    answer = agent.tool.retrieve_offloaded_content(reference="off_" + "0" * 20)
    assert answer["status"] == "error"
    assert "host is down" in text_of(answer)


def test_after_a_restart_a_reference_resolves(make_agent, giving, results, reference, tmp_path):
    store = MemoryLogStore()
    agent = make_agent(
        [use("look", {}), "done"],
        ContextOffloader(tmp_path),
        giving(BIG),
        session_manager=SessionManager("s", store),
    )
    agent("go")
    found = reference(results(agent)[0])
    del agent

    turns = [use(GET, {"reference": found, "pattern": "line 777:", "context_lines": 0}), "done"]
    again = make_agent(turns, ContextOffloader(tmp_path), session_manager=SessionManager("s", store))
    again("go on")

    first, read = results(again)
    assert reference(first) == found
    assert text_of(read) == f"777: line 777: {'x' * 40}"


def test_after_a_restart_a_reference_into_memory_is_an_error_that_says_so(
    make_agent, giving, results, reference, caplog
):
    store = MemoryLogStore()
    agent = make_agent(
        [use("look", {}), "done"],
        ContextOffloader(),
        giving(BIG),
        session_manager=SessionManager("s", store),
    )
    with caplog.at_level(logging.WARNING, "ropewalk.offload"):
        agent("go")

    assert "keeps offloaded results in memory" in caplog.text
    again = make_agent([], ContextOffloader(), session_manager=SessionManager("s", store))
    answer = again.tool.retrieve_offloaded_content(reference=reference(results(again)[0]))
    assert answer["status"] == "error"
    assert "memory of a process that has ended" in text_of(answer)


def test_agents_of_one_offloader_have_memories_of_their_own_and_references_of_their_own(
    make_agent, giving, results, reference
):
    offloader = ContextOffloader()
    one, other = (make_agent([use("look", {}, id="same"), "done"], offloader, giving(BIG)) for _ in "ab")
    one("go")
    other("go")
    mine, theirs = reference(results(one)[0]), reference(results(other)[0])

    assert mine != theirs
    assert other.tool.retrieve_offloaded_content(reference=theirs)["status"] == "success"
    answer = other.tool.retrieve_offloaded_content(reference=mine)
    assert answer["status"] == "error"
    assert f"nothing is kept under {mine}" in text_of(answer)


def test_agents_that_share_a_storage_can_hand_references_over(make_agent, giving, results, reference, tmp_path):
    one = make_agent([use("look", {}), "done"], ContextOffloader(FolderStorage(tmp_path)), giving(BIG))
    one("go")
    other = make_agent([], ContextOffloader(str(tmp_path)))
    read = other.tool.retrieve_offloaded_content(reference=f"[ref: {reference(results(one)[0])}]", pattern="line 5:")
    assert "5: line 5: " in text_of(read)


def test_the_memory_of_an_agent_ends_with_it(make_agent, giving):
    offloader = ContextOffloader()
    agent = make_agent([use("look", {}), "done"], offloader, giving(BIG))
    agent("go")
    assert len(offloader._memories) == 1
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None
    assert len(offloader._memories) == 0


def test_the_sandbox_of_the_agent_is_a_storage(make_agent, giving, results, reference):
    class Sandbox:
        def __init__(self):
            self.files = {}

        async def write_file(self, path, data):
            self.files[path] = data

        async def read_file(self, path):
            return self.files[path]

    class Providing:
        name = "providing"

        @hookimpl
        def provide_sandbox(self, spec):
            return sandbox

    sandbox = Sandbox()
    agent = make_agent([use("look", {}), "done"], ContextOffloader("sandbox"), giving(BIG), plugins=[Providing()])
    agent("go")
    found = reference(results(agent)[0])
    assert list(sandbox.files) == [f".ropewalk/context/{found}.item"] or found in next(iter(sandbox.files))
    read = agent.tool.retrieve_offloaded_content(reference=found, line_range=[1, 1])
    assert text_of(read).startswith("1: line 1:")

    plain = make_agent([use("look", {}), "done"], ContextOffloader(sandbox), giving(BIG))
    plain("go")
    assert len(sandbox.files) == 2


def test_a_sandbox_that_there_is_not_is_an_error_that_says_what_to_install(make_agent, giving, results):
    agent = make_agent([use("look", {}), "done"], ContextOffloader("sandbox"), giving(BIG))
    with pytest.raises(MissingPluginError, match="pip install"):
        agent("go")

    assert text_of(results(agent)[0]) == BIG


def test_a_sandbox_that_does_not_start_keeps_the_result_whole(make_agent, giving, results, caplog):
    class Providing:
        name = "providing"

        @hookimpl
        def provide_sandbox(self, spec):
            raise ConnectionError("no route to host")

    agent = make_agent([use("look", {}), "done"], ContextOffloader("sandbox"), giving(BIG), plugins=[Providing()])
    agent("go")
    assert text_of(results(agent)[0]) == BIG
    assert "no route to host" in caplog.text


# -- eviction ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def evicting(make_agent, giving):
    """`evicting(ids, offloader)`: an agent that looks once for each id; those with `big` in them are large."""

    def make(ids, offloader, **given):
        tool = giving(lambda call: BIG if "big" in call.tool_use["toolUseId"] else "small")
        turns = [use("look", {}, id=each) for each in ids.split()]
        return make_agent([*turns, "done"], offloader, tool, **given)

    return make


@pytest.mark.parametrize(("between", "left"), [("s1", 2), ("s1 s2", 2), ("s1 s2 s3", 1), ("s1 s2 s3 s4", 1)])
def test_what_was_not_used_for_long_is_removed_when_another_is_offloaded(evicting, between, left):
    storage = MemoryStorage()
    agent = evicting(f"big1 {between} big2", ContextOffloader(storage, evict_after_cycles=3))
    agent("go")
    assert len(asyncio.run(storage.list())) == left


def test_cycles_of_all_runs_count_and_small_results_remove_nothing(evicting, results, reference):
    storage = MemoryStorage()
    agent = evicting("big1", ContextOffloader(storage, evict_after_cycles=3))
    agent("go")
    for _ in range(5):
        agent.model = ScriptedModel([use("look", {}, id="s"), "done"])
        agent("more")

    assert len(asyncio.run(storage.list())) == 1
    agent.model = ScriptedModel([use("look", {}, id="big2"), "done"])
    agent("more")
    assert len(asyncio.run(storage.list())) == 1
    first, *_, last = results(agent)
    answer = agent.tool.retrieve_offloaded_content(reference=reference(first))
    assert answer["status"] == "error"
    assert "removed after 3 cycles without being read" in text_of(answer)
    assert agent.tool.retrieve_offloaded_content(reference=reference(last))["status"] == "success"


def test_what_is_read_stays(evicting, results, reference):
    storage = MemoryStorage()
    agent = evicting("big1", ContextOffloader(storage, evict_after_cycles=3))
    agent("go")
    found = reference(results(agent)[0])
    for _ in range(6):
        agent.model = ScriptedModel([use(GET, {"reference": found, "pattern": "line 9:"}), "done"])
        agent("read")

    agent.model = ScriptedModel([use("look", {}, id="big2"), "done"])
    agent("more")
    assert len(asyncio.run(storage.list())) == 2


def test_memory_stays_bounded_in_a_long_run_and_a_folder_keeps_all(evicting, tmp_path):
    ids = " ".join(f"big{n}" for n in range(60))
    storage = MemoryStorage()
    agent = evicting(ids, ContextOffloader(storage))
    agent("go")
    assert len(asyncio.run(storage.list())) == 21
    assert len(agent.plugin_state("offload").get()) == 21

    agent = evicting(ids, ContextOffloader(tmp_path))
    agent("go")
    assert len(asyncio.run(FolderStorage(tmp_path).list())) == 60
    assert agent.plugin_state("offload").get() == {}


def test_a_turn_that_does_not_fit_makes_nothing_old(make_agent, giving, results, reference):
    storage = MemoryStorage()
    chat = [{"role": role, "content": [{"text": f"{n} " * 50}]} for n in range(40) for role in ("user", "assistant")]
    turns = [use("look", {}, id="big1"), "done"]
    agent = make_agent(turns, ContextOffloader(storage, evict_after_cycles=10), giving(BIG), messages=chat)
    agent("go")
    agent.model = ScriptedModel([ContextWindowOverflowException("too long") for _ in range(5)])
    with pytest.raises(ContextWindowOverflowException):
        agent("more")

    agent.model = ScriptedModel([use("look", {}, id="big2"), "done"])
    agent("less")

    assert len(asyncio.run(storage.list())) == 2
    first, _ = results(agent)
    assert agent.tool.retrieve_offloaded_content(reference=reference(first))["status"] == "success"


def test_what_cannot_be_removed_is_tried_again(evicting, caplog):
    class Stuck(Keeping):
        async def delete(self, key):
            tried.append(key)
            raise OSError("busy")

    tried = []
    agent = evicting("big1 s1 s2 big2 s3 big3", ContextOffloader(Stuck(), evict_after_cycles=1))
    agent("go")
    assert len(tried) == 3
    assert len(set(tried)) == 2
    assert "could not be removed: busy" in caplog.text


def test_another_history_makes_nothing_older(evicting, make_agent):
    storage = MemoryStorage()
    agent = evicting("s1 s2 s3 s4 s5 s6 big1", ContextOffloader(storage, evict_after_cycles=2))
    agent("go")
    snapshot = agent.take_snapshot(preset="session")
    other = evicting("big2", ContextOffloader(storage, evict_after_cycles=2))
    del snapshot.data["messages"][:]
    other.load_snapshot(snapshot)
    other("go")
    assert len(asyncio.run(storage.list())) == 2


# -- cost --------------------------------------------------------------------------------------------------------------


def test_small_results_cost_no_state_no_record_and_no_look_at_the_storage(make_agent, giving):
    class Counting(Keeping):
        async def write(self, key, data):
            raise AssertionError("nothing is written")

    kinds = []

    class Records:
        name = "records"

        @hookimpl
        async def write_records(self, records):
            kinds.extend(record.kind for record in records)

    agent = make_agent(
        [*[use("look", {})] * 30, "done"], ContextOffloader(Counting()), giving("x"), plugins=[Records()]
    )
    agent("go")
    assert "state_changed" not in kinds
    assert agent.hooks.plan.manage_context == () or all(
        link.plugin_name != "offload" for link in agent.hooks.plan.manage_context
    )


def test_a_reference_is_the_same_when_a_call_is_gone_through_again(make_agent, giving, results):
    class Twice:
        name = "twice"
        order = -50

        @hookimpl
        async def around_tool_call(self, call, call_next):
            first = await call_next(call)
            assert await call_next(call) == first
            return first

    storage = MemoryStorage()
    agent = make_agent([use("look", {}), "done"], ContextOffloader(storage), giving(BIG), plugins=[Twice()])
    agent("go")
    assert len(asyncio.run(storage.list())) == 1


class Asking:
    """A tool that asks its caller before it goes on."""

    tool_name = "ask"
    tool_spec = {"name": "ask", "description": "Asks.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

    async def invoke(self, call):
        answer = call.interrupt("go", "May I?")
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": str(answer)}]}


def test_a_pause_keeps_the_preview_and_stores_nothing_twice(make_agent, giving, results, reference):
    storage = MemoryStorage()
    turns = [[use("look", {}, id="T1"), use("ask", {}, id="T2")], "done"]
    agent = make_agent(turns, ContextOffloader(storage), giving(BIG), Asking())
    paused = agent("go")
    assert paused.stop_reason == "interrupt"
    assert "line 500:" not in str(agent.take_snapshot(preset="session").to_dict())

    agent([{"interruptResponse": {"interruptId": paused.interrupts[0].id, "response": "yes"}}])
    first, second = results(agent)
    assert asyncio.run(storage.list()) == [reference(first)]
    assert text_of(second) == "yes"


def test_a_run_that_goes_on_after_a_crash_finds_the_same_reference(make_agent, giving, results, reference, tmp_path):
    class Crash(BaseException):
        pass

    class Dying(MemoryLogStore):
        """Its process ends right after the tool's record is written."""

        dead = False

        async def append(self, key, records, position):
            if self.dead:
                raise Crash

            end = await super().append(key, records, position)
            self.dead = any(record.kind == "tool_ended" for record in records)
            return end

    store = Dying()
    agent = make_agent(
        [use("look", {}), "never"], ContextOffloader(tmp_path), giving(BIG), session_manager=SessionManager("s", store)
    )
    with pytest.raises(Crash):
        agent("go")

    (found,) = asyncio.run(FolderStorage(tmp_path).list())
    store.dead = False
    runs = []
    tool = giving(lambda call: runs.append(call) or BIG)
    again = make_agent(["done"], ContextOffloader(tmp_path), tool, session_manager=SessionManager("s", store))
    again()
    assert runs == []
    assert reference(results(again)[0]) == found
    assert asyncio.run(FolderStorage(tmp_path).list()) == [found]
