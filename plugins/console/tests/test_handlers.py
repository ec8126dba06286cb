"""Callback handlers, called as the plugin calls them."""

from __future__ import annotations

import functools

import pytest

from ropewalk_console import CompositeCallbackHandler, PrintingCallbackHandler, null_callback_handler
from ropewalk_console.handlers import is_async

TOOL = {
    "event": {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"name": "add", "toolUseId": "A"}}}}
}


async def later(**event):
    pass


class Later:
    async def __call__(self, **event):
        pass


def test_answer_thinking_and_numbered_tools_are_printed(capsys):
    handler = PrintingCallbackHandler()
    for event in (
        {"init_event_loop": True},
        {"reasoningText": "hm. ", "reasoning": True},
        {"data": "I "},
        {"data": "add"},
        TOOL,
        {"event": {"contentBlockStart": {"start": {}}}},
        TOOL,
        {"result": object()},
    ):
        handler(**event)

    assert capsys.readouterr().out == "hm. I add\nTool #1: add\n\nTool #2: add\n"
    assert handler.tool_count == 2


def test_tools_are_counted_but_not_printed_when_not_wanted(capsys):
    handler = PrintingCallbackHandler(verbose_tool_use=False)

    handler(**TOOL)

    assert (capsys.readouterr().out, handler.tool_count) == ("", 1)


def test_a_discarded_attempt_is_announced(capsys):
    PrintingCallbackHandler()(attempt_discarded={"attempt": 1, "reason": "throttled"})

    assert capsys.readouterr().out == "\n[the answer starts again: throttled]\n"


def test_the_null_handler_takes_anything(capsys):
    assert null_callback_handler(data="a", anything=1) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("end", [{"result": None}, {"force_stop": True, "force_stop_reason": "late"}], ids=str)
def test_the_end_of_a_run_ends_its_line_once(capsys, end):
    handler = PrintingCallbackHandler()
    for event in ({"data": "It is 3."}, {"message": {}}, end, end, {"data": "And 4.\n"}, end):
        handler(**event)

    assert capsys.readouterr().out == "It is 3.\nAnd 4.\n"


def test_a_composite_calls_its_handlers_in_order():
    seen = []
    both = CompositeCallbackHandler(lambda **event: seen.append(("one", event)), lambda **event: seen.append("two"))

    assert both(data="a") is None
    assert seen == [("one", {"data": "a"}), "two"]


async def test_a_composite_awaits_its_asynchronous_handlers_in_order():
    seen = []

    async def first(**event):
        seen.append("first")

    await CompositeCallbackHandler(first, lambda **event: seen.append("second"))(data="a")

    assert seen == ["first", "second"]


def test_an_error_of_a_handler_leaves_the_composite():
    seen = []

    def broken(**event):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        CompositeCallbackHandler(broken, lambda **event: seen.append(event))(data="a")

    assert seen == []


@pytest.mark.parametrize("handler", [3, "print", PrintingCallbackHandler])
def test_a_composite_refuses_what_is_no_handler(handler):
    with pytest.raises(TypeError, match="a callback handler is a function or an instance"):
        CompositeCallbackHandler(handler)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (later, True),
        (Later(), True),
        (Later().__call__, True),
        (functools.partial(later, extra=1), True),
        (CompositeCallbackHandler(null_callback_handler, CompositeCallbackHandler(later)), True),
        (CompositeCallbackHandler(null_callback_handler), False),
        (null_callback_handler, False),
        (PrintingCallbackHandler(), False),
        (functools.partial(null_callback_handler, extra=1), False),
    ],
)
def test_asynchronous_handlers_are_recognised(handler, expected):
    assert is_async(handler) is expected
