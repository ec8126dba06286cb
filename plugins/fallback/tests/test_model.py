"""The model by itself, without its plugin."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import Agent, MissingPluginError, ModelRequest
from ropewalk.errors import ContextWindowOverflowException, ModelError, ModelThrottledException
from ropewalk_fallback import FallbackModel
from ropewalk_testing import ScriptedModel, turn

ASKED = ModelRequest([{"role": "user", "content": [{"text": "Hello."}]}])


async def said(model):
    deltas = [
        event["contentBlockDelta"]["delta"] async for event in model.stream(ASKED) if "contentBlockDelta" in event
    ]
    return "".join(delta["text"] for delta in deltas)


async def test_the_first_model_answers_when_it_can(named):
    first, second = named("a", "from a"), named("b")
    assert await said(FallbackModel([first, second])) == "from a"
    assert second.calls == 0


async def test_the_next_model_answers_when_nothing_was_streamed(named):
    first, second, third = (
        named("a", ModelThrottledException("slow")),
        named("b", ConnectionError("lost")),
        named("c", "c"),
    )
    assert await said(FallbackModel([first, second, third])) == "c"


async def test_the_start_of_a_message_is_no_piece_of_an_answer(named):
    class Starts:
        async def stream(self, request):
            yield {"messageStart": {"role": "assistant"}}
            raise ModelThrottledException("slow")

    assert await said(FallbackModel([Starts(), named("b", "from b")])) == "from b"


async def test_a_model_that_streams_nothing_that_can_be_read_is_a_model_error():
    class Wrong:
        async def stream(self, request):
            return []

    with pytest.raises(ModelError, match="which is no async iterator"):
        await said(FallbackModel([Wrong()]))


async def test_after_a_piece_was_streamed_the_error_goes_its_way(named):
    first, second = named("a", turn("half", error=ModelThrottledException("slow"))), named("b", "from b")
    with pytest.raises(ModelThrottledException):
        await said(FallbackModel([first, second]))

    assert second.calls == 0


async def test_every_call_begins_at_the_first_model(named):
    first, second = named("a", ModelThrottledException("slow"), "from a"), named("b", "from b")
    model = FallbackModel([first, second])
    assert [await said(model), await said(model)] == ["from b", "from a"]


async def test_an_error_that_is_not_waited_for_goes_its_way(named):
    first, second = named("a", ModelError("bad request")), named("b", "from b")
    with pytest.raises(ModelError, match="bad request"):
        await said(FallbackModel([first, second]))

    assert await said(FallbackModel([named("a", ModelError("bad request")), second], on=[ModelError])) == "from b"


async def test_the_last_error_is_raised_when_all_have_failed(named):
    models = [named("a", ModelThrottledException("a is slow")), named("b", ModelThrottledException("b is slow"))]
    with pytest.raises(ModelThrottledException, match="b is slow"):
        await said(FallbackModel(models))


async def test_switches_are_bounded(named):
    models = [named(name, ModelThrottledException(f"{name} is slow")) for name in "abc"]
    with pytest.raises(ModelThrottledException, match="b is slow"):
        await said(FallbackModel(models, max_switches=1))

    assert models[2].calls == 0


@pytest.mark.parametrize(
    ("windows", "answer"),
    [
        ((100, 200, None), "b"),
        ((100, 50, 200), "c"),
        ((100, None, 101), "c"),
        ((100, 100, 50), None),
        ((None, 200, 300), None),
    ],
)
async def test_after_an_overflow_only_a_larger_window_is_tried(named, windows, answer):
    models = [named(name, name, context_window=window) for name, window in zip("bc", windows[1:], strict=True)]
    first = named("a", ContextWindowOverflowException("too long"), context_window=windows[0])
    model = FallbackModel([first, *models])
    if answer is None:
        with pytest.raises(ContextWindowOverflowException):
            await said(model)
    else:
        assert await said(model) == answer


async def test_closing_the_stream_closes_that_of_the_model_at_work(named):
    first, second = named("a", ModelThrottledException("slow")), named("b", turn("one", "two"))
    stream = FallbackModel([first, second]).stream(ASKED)
    await anext(stream)
    await stream.aclose()
    assert (second.active, second.aborted) == (0, 1)


async def test_cancelling_reaches_the_model_at_work(named):
    first, second = named("a", ModelThrottledException("slow")), named("b", turn("one", stall=60))
    task = asyncio.create_task(said(FallbackModel([first, second])))
    await second.wait_stalled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (second.active, second.aborted) == (0, 1)


async def test_a_stream_that_cannot_be_closed_is_read_all_the_same():
    class Plain:
        def __init__(self):
            self.left = [{"messageStart": {"role": "assistant"}}, {"messageStop": {"stopReason": "end_turn"}}]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration

            return self.left.pop(0)

    class Bare:
        def stream(self, request):
            return Plain()

    assert len([event async for event in FallbackModel([Bare()]).stream(ASKED)]) == 2


async def test_a_model_string_needs_the_plugin():
    with pytest.raises(MissingPluginError, match=r"testing:echo.*plugins=\['fallback'\]"):
        await said(FallbackModel(["testing:echo"]))


async def test_what_a_model_has_is_that_of_the_first(named):
    first = named("a", context_window=100, count_tokens=7)
    first.supports_output_schema = True
    model = FallbackModel([first, named("b", context_window=200)])
    assert (model.model_id, model.context_window, model.count_tokens(ASKED)) == ("a", 100, 7)
    assert model.supports_output_schema is False
    assert FallbackModel([first]).supports_output_schema is True
    assert not hasattr(FallbackModel([named("b"), first]), "count_tokens")
    assert repr(FallbackModel([first, "testing:echo"])) == "<FallbackModel: a, testing:echo>"


def test_asking_a_string_for_what_it_has_does_not_fail():
    model = FallbackModel(["testing:echo"])
    assert (model.model_id, model.context_window, model.supports_output_schema) == ("testing:echo", None, False)
    assert not hasattr(model, "count_tokens")


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        (([],), ValueError, "at least one model"),
        (([None],), ValueError, "no None"),
        (([7],), TypeError, "pass a model string"),
        (([ScriptedModel],), TypeError, "pass a model string"),
        ((["testing:echo"], ["slow"]), ValueError, "no kind of failure"),
        ((["testing:echo"], ["auth"], -1), ValueError, "max_switches"),
        ((["testing:echo"], ["auth"], True), ValueError, "max_switches"),
    ],
)
def test_wrong_arguments_are_refused(arguments, kind, match):
    with pytest.raises(kind, match=match):
        FallbackModel(*arguments)


def test_one_string_is_one_model():
    assert FallbackModel("testing:echo").models == ("testing:echo",)


async def test_an_agent_without_the_plugin_falls_back_within_a_call(named):
    model = FallbackModel([named("a", ModelThrottledException("slow")), named("b", "from b")])
    result = await Agent(model=model, callback_handler=None).invoke_async("Hello.")
    assert str(result) == "from b\n"
    assert "fallback" not in result.state
