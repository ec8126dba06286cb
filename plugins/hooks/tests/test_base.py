from __future__ import annotations

import pytest

from ropewalk import PluginError, ToolDefinitionError, hookimpl
from ropewalk_hooks import AfterModelCallEvent, BeforeModelCallEvent, HookError, Plugin, hook


class Say:
    """A tool object."""

    def __init__(self, name):
        self.tool_name = name
        self.tool_spec = {"name": name, "description": "Says.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call):
        return {"toolUseId": call.tool_use["toolUseId"], "status": "success", "content": [{"text": "said"}]}


class Base(Plugin):
    name = "base"
    say = Say("say")

    def __init__(self):
        self.seen = []

    def init_agent(self, agent):
        self.seen.append("base init")

    @hook
    def on_model(self, event: BeforeModelCallEvent):
        self.seen.append("base model")


def test_what_is_inherited_counts_and_what_is_overridden_counts_once(make_agent):
    class Derived(Base):
        name = "derived"
        shout = Say("shout")

        def init_agent(self, agent):
            super().init_agent(agent)
            self.seen.append("derived init")

        @hook
        def on_model(self, event: BeforeModelCallEvent):
            self.seen.append("derived model")

    plugin = Derived()
    agent = make_agent("Hello.", plugins=[plugin])
    agent("Hi.")

    assert plugin.seen == ["base init", "derived init", "derived model"]
    assert sorted(agent.tool_names) == ["add", "say", "shout"]


def test_the_decorator_takes_events_and_an_order(make_agent):
    class Many(Plugin):
        name = "many"

        def __init__(self):
            self.seen = []

        @hook([BeforeModelCallEvent, AfterModelCallEvent])
        def both(self, event):
            self.seen.append("both")

        @hook(order=-1)
        def early(self, event: BeforeModelCallEvent):
            self.seen.append("early")

        @hook(BeforeModelCallEvent, order=1)
        def late(self, event):
            self.seen.append("late")

    plugin = Many()
    make_agent("Hello.", plugins=[plugin])("Hi.")

    assert plugin.seen == ["early", "both", "late", "both"]


def test_a_method_that_does_not_say_which_events_is_refused(make_agent):
    class Untyped(Plugin):
        name = "untyped"

        @hook
        def something(self, event): ...

    with pytest.raises(HookError, match=r"Untyped\.something"):
        make_agent("Hello.", plugins=[Untyped()])


async def test_hookimpl_methods_work_beside_the_callbacks(make_agent):
    class Both(Base):
        name = "both"

        @hookimpl
        async def init_agent(self, agent):
            self.seen.append("hookimpl init")

        @hookimpl
        def on_agent_ready(self, agent):
            self.seen.append("ready")

    plugin = Both()
    agent = make_agent("Hello.", plugins=[plugin])
    await agent.invoke_async("Hi.")

    assert sorted(plugin.seen) == ["base model", "hookimpl init", "ready"]


def test_a_plugin_without_a_name_is_refused(make_agent):
    class Nameless(Plugin):
        pass

    with pytest.raises(PluginError, match="its name is None"):
        make_agent("Hello.", plugins=[Nameless()])


def test_the_name_may_be_a_property(make_agent):
    class Named(Plugin):
        @property
        def name(self):
            return "computed"

    agent = make_agent("Hello.", plugins=[Named()])
    assert "computed" in [plugin.name for plugin in agent.hooks.plugins]


def test_a_tool_of_a_name_that_is_taken_is_refused(make_agent):
    class Adding(Plugin):
        name = "adding"
        add = Say("add")

    with pytest.raises(ToolDefinitionError, match="'add'"):
        make_agent("Hello.", plugins=[Adding()])


def test_an_init_agent_that_hides_that_it_is_async_is_refused(make_agent):
    class Hidden(Plugin):
        name = "hidden"

        async def _later(self): ...

        def init_agent(self, agent):
            return self._later()

    with pytest.raises(PluginError, match="init_agent of plugin 'hidden'"):
        make_agent("Hello.", plugins=[Hidden()])


async def test_an_async_init_agent_that_fails_stops_the_run_and_is_tried_again(make_agent):
    class Connecting(Plugin):
        name = "connecting"
        tries = 0

        async def init_agent(self, agent):
            self.tries += 1
            if self.tries == 1:
                raise ConnectionError("not there")

    agent = make_agent("Hello.", plugins=[Connecting()])
    with pytest.raises(ConnectionError, match="not there"):
        await agent.invoke_async("Hi.")

    assert str(await agent.invoke_async("Hi.")) == "Hello.\n"


def test_a_plugin_can_be_added_later(make_agent):
    plugin = Base()
    agent = make_agent("Hello.")
    agent.add_plugin(plugin)
    agent("Hi.")

    assert plugin.seen == ["base init", "base model"]
    assert "say" in agent.tool_names
