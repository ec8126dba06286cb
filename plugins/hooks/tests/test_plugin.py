from __future__ import annotations

import asyncio
import contextlib
import gc
from weakref import ref

import pytest

from ropewalk import MissingPluginError, ModelError, hookimpl
from ropewalk_hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeModelCallEvent,
    HookProvider,
    HooksPlugin,
    Plugin,
    hook,
)
from ropewalk_hooks.plugin import find_dispatcher
from ropewalk_testing import PluginContract, use

HOT = ("around_invocation", "around_model_call", "around_tools", "around_tool_call", "on_event", "on_delta")


class TestTheContract(PluginContract):
    plugin = HooksPlugin


def hot_links(agent):
    return [link for name in HOT for link in getattr(agent.hooks.plan, name) if link.plugin_name.startswith("hooks")]


def test_an_agent_gets_links_with_its_first_callback_and_no_more_with_others(make_agent):
    agent = make_agent("Hello.")
    assert hot_links(agent) == []

    agent.add_hook(print, BeforeModelCallEvent)
    with_one = agent.hooks
    agent.add_hook(print, AfterInvocationEvent)

    assert len(hot_links(agent)) == 5
    assert agent.hooks is with_one


def test_an_empty_list_of_hooks_adds_nothing(make_agent):
    assert hot_links(make_agent("Hello.", hooks=[])) == []


def test_a_provider_that_registers_nothing_adds_nothing(make_agent):
    class Nothing(HookProvider):
        def register_hooks(self, registry): ...

    assert hot_links(make_agent("Hello.", hooks=[Nothing()])) == []


def test_a_plugin_in_hooks_is_told_where_it_belongs(make_agent):
    class Mine(Plugin):
        name = "mine"

    with pytest.raises(ValueError, match=r"plugins=\[...\]"):
        make_agent("Hello.", hooks=[Mine()])


def test_switched_off_it_says_so(make_agent):
    with pytest.raises(MissingPluginError, match="'hooks' is switched off"):
        make_agent("Hello.", hooks=[print], plugins=["-hooks"])

    with pytest.raises(MissingPluginError, match="'hooks' is not active"):
        make_agent("Hello.", plugins=["-hooks"]).add_hook(print, BeforeModelCallEvent)


def test_the_first_callback_of_an_agent_that_runs_counts_from_the_next_cycle(make_agent):
    seen = []

    class Register:
        tool_name = "register"
        tool_spec = {"name": "register", "description": "R.", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def invoke(self, call):
            call.agent.add_hook(
                lambda event: seen.append(type(event).__name__), [AfterToolCallEvent, BeforeModelCallEvent]
            )
            return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "done"}]}

    agent = make_agent(use("register", {}, id="A"), use("add", {"a": 1}, id="B"), "Fine.", tools=[Register()])
    agent("Hi.")

    assert seen == ["BeforeModelCallEvent", "AfterToolCallEvent", "BeforeModelCallEvent"]


def test_an_agent_is_not_kept_alive_by_its_callbacks(make_agent):
    agent = make_agent("Hello.")
    agent.add_hook(lambda event, agent=agent: None, BeforeModelCallEvent)
    agent("Hi.")

    gone = ref(agent)
    del agent
    gc.collect()

    assert gone() is None


# -- clones ------------------------------------------------------------------------------------------------------------


class Noting(Plugin):
    name = "noting"

    def __init__(self):
        self.seen = []

    def init_agent(self, agent):
        agent.add_hook(lambda event, name=agent.name: self.seen.append(name), BeforeModelCallEvent)

    @hook
    def on_model(self, event: BeforeModelCallEvent):
        self.seen.append("method")


def test_a_clone_has_the_callbacks_and_each_is_called_once(make_agent):
    noting, seen, made = Noting(), [], []
    agent = make_agent("Hello.", "Hello.", "Hello.", plugins=[noting], name="first")
    agent.add_hook(lambda event: seen.append(event.agent), BeforeModelCallEvent)
    agent.add_hook(lambda event: made.append(event.agent), AgentInitializedEvent)

    clone = agent.clone()
    second = clone.clone()
    second("Hi.")

    assert seen == [second]
    assert noting.seen == ["method", "first"]
    assert made == [clone, second]


def test_a_callback_of_a_clone_is_no_callback_of_its_origin(make_agent):
    seen = []
    agent = make_agent("Hello.", "Hello.", hooks=[lambda_for_models])
    clone = agent.clone()
    clone.add_hook(lambda event: seen.append(event.agent), BeforeModelCallEvent)

    agent("Hi.")
    assert seen == []

    clone("Hi.")
    assert seen == [clone]
    assert find_dispatcher(agent) is not find_dispatcher(clone)


def lambda_for_models(event: BeforeModelCallEvent): ...


async def test_two_agents_that_run_at_once_have_their_own_events(make_agent):
    seen = []
    agents = [make_agent(use("add", {"a": 1}, id="A"), "Hello.", name=name) for name in ("one", "two")]
    for agent in agents:
        agent.add_hook(lambda event, name=agent.name: seen.append((name, event.agent.name)), BeforeModelCallEvent)

    await asyncio.gather(*(agent.invoke_async("Hi.") for agent in agents))

    assert sorted(seen) == [("one", "one"), ("one", "one"), ("two", "two"), ("two", "two")]


@pytest.fixture
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _fail(kind):
    raise kind("down")


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("where", ["model", "tool", "callback"])
async def test_an_agent_is_freed_at_once_after_an_error_that_callbacks_were_told_of(make_agent, where, kind):
    class Failing:
        name = "failing"

        @hookimpl
        async def around_model_call(self, request, call_next):
            return _fail(kind) if where == "model" else await call_next(request)

        @hookimpl
        async def around_tool_call(self, call, call_next):
            return _fail(kind) if where == "tool" else await call_next(call)

    agent = make_agent(use("add", {"a": 1, "b": 2}), "3", plugins=[Failing()], callback_handler=None)
    for event_type in (AfterModelCallEvent, AfterToolCallEvent):
        agent.add_hook(lambda event: _fail(kind) if where == "callback" else None, event_type)

    with contextlib.suppress(kind):  # not pytest.raises, which keeps the error
        pytest.fail(str(await agent.invoke_async("go")))

    gone = ref(agent)
    del agent
    await asyncio.sleep(0)
    assert gone() is None


@pytest.mark.usefixtures("_no_collector")
async def test_an_agent_is_freed_at_once_after_a_repetition_that_a_callback_asked_for(make_agent):
    def again(event):
        event.retry = event.exception is not None

    agent = make_agent(lambda request: ModelError("down"), "up", retry_strategy=None, callback_handler=None)
    agent.add_hook(again, AfterModelCallEvent)

    assert str(await agent.invoke_async("go")) == "up\n"

    gone = ref(agent)
    del agent
    await asyncio.sleep(0)
    assert gone() is None
