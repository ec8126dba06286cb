"""What every plugin keeps, as tests to inherit: `class TestMine(PluginContract): plugin = MyPlugin`."""

# ruff: noqa: S101 - these are tests; pytest shows both sides of an assert

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import subprocess
import sys
from importlib.metadata import distribution
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import pytest

from ropewalk import Agent
from ropewalk.errors import RopewalkError
from ropewalk.kits.hooks import Hooks, discovery
from ropewalk.kits.hooks.loading import made
from ropewalk.kits.hooks.refusals import check_class
from ropewalk.kits.sessions.opening import store_of
from ropewalk_testing.history import assert_valid_history
from ropewalk_testing.scripted import ScriptedModel
from ropewalk_testing.snapshots import snapshot
from ropewalk_testing.turns import text, use

HEAVY: Final = ("boto3", "litellm", "mcp", "opentelemetry", "sqlalchemy", "xllamacpp")
MOST_MODULES: Final = 100
MOST_STEPS: Final = 1_000

_CHILD: Final = """
import json, sys
import ropewalk
from pydantic import BaseModel
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


class Echo:
    """The tool of the contract's agents: answers with its argument `value`."""

    tool_name = "echo"
    tool_spec: Final = {"name": "echo", "description": "Says it again.", "inputSchema": {"json": {"type": "object"}}}

    async def invoke(self, call: Any) -> Any:
        """Answers."""
        use_id = call.tool_use["toolUseId"]
        return {"toolUseId": use_id, "status": "success", "content": [{"text": call.tool_use["input"]["value"]}]}


class PluginContract:
    """Tests that a plugin passes. A subclass named `Test...` sets `plugin`, and overrides what its plugin needs.

    Attributes:
        plugin: The plugin class.
        installed: Whether it is the plugin of an entry point; False leaves out the tests of its package.
        may_change: Attributes of the instance that runs may set, because they belong to no agent (a client, say).
            State of agents belongs into `agent.plugin_state(name)`; buffers keyed weakly by agent are allowed.
        heavy: Packages that importing the plugin must not load.
    """

    plugin: ClassVar[type[Any]]
    installed: ClassVar[bool] = True
    may_change: ClassVar[tuple[str, ...]] = ()
    heavy: ClassVar[tuple[str, ...]] = HEAVY

    # -- what a subclass may override ------------------------------------------------------------------------------

    def make(self) -> Any:
        """An instance, with options from file and environment only."""
        return made(self.plugin)

    def make_agent(self, plugin: Any, word: str) -> Agent:
        """An agent with the plugin that runs a tool once and then answers `{word} ends`.

        `word` tells its run from others; `plugin` is an instance, or `"-name"` for an agent without it.
        """
        asking = [text(f"{word} asks"), use("echo", {"value": f"{word} echoes"}, id=f"{word}-1")]
        return Agent(model=ScriptedModel([asking, f"{word} ends"]), tools=[Echo()], plugins=[plugin])

    def outcome(self, agent: Agent, result: Any) -> Any:
        """What is compared between an agent that has the plugin for itself and one that shares it."""
        return result.stop_reason, str(result), [dict(message) for message in agent.messages]

    # -- the tests -------------------------------------------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def alone(self, no_plugins_env: pytest.MonkeyPatch) -> Any:
        """No other plugin takes part, and what was discovered before is forgotten."""
        discovery.refresh()
        yield no_plugins_env
        discovery.refresh()

    def test_it_is_made_without_options(self) -> None:
        """`plugins=["name"]` works, and an installed plugin is active without anybody giving it options."""
        assert isinstance(self.make(), self.plugin)

    def test_it_implements_hooks_that_exist(self) -> None:
        """At least one; unknown ones and wrong signatures are refused, with the fix."""
        plugin = self.make()

        implemented = check_class(self.plugin, plugin.name, getattr(self.plugin, "tier", "normal"))
        Hooks.of([plugin])

        assert implemented, f"{self.plugin.__qualname__} implements no hook: mark its methods with @hookimpl"

    def test_importing_it_is_cheap(self) -> None:
        """No heavy package is loaded, and not many modules: import them where they are used."""
        module = self._entry().entry_point.module
        loaded = _loaded_by(module)

        assert [name for name in loaded if name.partition(".")[0] in self.heavy] == []
        assert len(loaded) <= MOST_MODULES, f"importing {module} loads {len(loaded)} modules: {loaded}"

    def test_its_entry_point_bears_its_name(self) -> None:
        """The name under which it is installed, switched off and configured is the class's."""
        entry = self._entry()

        assert entry.name == self.plugin.name
        assert entry.entry_point.load() is self.plugin
        entry.check_rivals()

    def test_its_distribution_has_a_readme(self) -> None:
        """`readme = "README.md"` in its pyproject.toml."""
        metadata: Any = distribution(self._entry().distribution).metadata
        description = metadata.get("Description") or metadata.get_payload()

        assert description.strip(), "the distribution has no description: readme = 'README.md' in pyproject.toml"

    async def test_one_instance_serves_two_agents_at_once(self) -> None:
        """Both get what they get alone; the instance and its class are as they were, and keep no agent alive."""
        shared = self.make()
        single = [await self._outcome_alone(word) for word in ("ping", "pong")]
        before = snapshot(shared, without=self.may_change)

        agents = [self.make_agent(shared, word) for word in ("ping", "pong")]
        together = await _side_by_side(agents)
        outcomes = [self.outcome(agent, result) for agent, result in zip(agents, together, strict=True)]

        assert outcomes == single
        assert snapshot(shared, without=self.may_change) == before, (
            "state of a run belongs into agent.plugin_state(...)"
        )
        for agent in agents:
            assert_valid_history(agent.messages, open_tail=agent.suspension is not None)

        del agents, together, agent
        await asyncio.sleep(0)
        gc.collect()
        assert {name: len(value) for name, value in _weak_buffers(shared).items() if len(value)} == {}

    async def test_an_agent_runs_with_it_switched_off(self, alone: pytest.MonkeyPatch) -> None:
        """`plugins=["-name"]` leaves it out, and nothing else depends on it."""
        name = self._entry().name
        alone.delenv("ROPEWALK_PLUGINS")

        agent = self.make_agent(f"-{name}", "solo")
        result = await agent.invoke_async("Go.")

        assert name not in [plugin.name for plugin in agent.hooks.plugins]
        assert str(result) == "solo ends\n", (
            f"without {name!r} the agent answers {str(result)!r}: the script of make_agent ends in f'{{word}} ends'"
        )
        assert_valid_history(agent.messages)

    async def test_what_it_provides_says_so_when_it_is_switched_off(self, alone: pytest.MonkeyPatch) -> None:
        """A parameter of a plugin that is off is an error that names it; it is not passed over."""
        entry = self._entry()
        alone.setenv("ROPEWALK_PLUGINS", f"-{entry.name}")
        owners = discovery.registry().owners
        for parameter in entry.provides:
            if owners[parameter] == (entry.name,):
                with pytest.raises(RopewalkError) as caught:
                    await _use(parameter)

                assert entry.name in str(caught.value), f"the error for {parameter} does not name the plugin"

    # -- their parts -----------------------------------------------------------------------------------------------

    def _entry(self) -> discovery.Installed:
        if not self.installed:
            pytest.skip("a plugin without an entry point")

        found = discovery.registry().installed.get(self.plugin.name)
        assert found is not None, (
            f"no installed distribution has an entry point {self.plugin.name!r} in the group {discovery.PLUGINS}"
        )
        return found

    async def _outcome_alone(self, word: str) -> Any:
        agent = self.make_agent(self.make(), word)
        return self.outcome(agent, (await _side_by_side([agent]))[0])


def _loaded_by(module: str) -> list[str]:
    arguments = [sys.executable, "-c", _CHILD.format(module=module)]
    finished = subprocess.run(arguments, check=False, capture_output=True, text=True)  # noqa: S603 - our own script
    assert finished.returncode == 0, finished.stderr
    loaded: list[str] = json.loads(finished.stdout.splitlines()[-1])
    return loaded


async def _side_by_side(agents: list[Agent]) -> list[Any]:
    """Runs the agents in turns: one event of each, until all have ended."""
    runs = [agent.stream_async("Go.") for agent in agents]
    results: dict[int, Any] = {}
    for _ in range(MOST_STEPS):
        for place, run in enumerate(runs):
            if place not in results:
                event = await anext(run)
                if "result" in event:
                    results[place] = event["result"]

        if len(results) == len(runs):
            break

    for run in runs:
        await run.aclose()  # type: ignore[attr-defined]

    return [results[place] for place in range(len(runs))]


def _weak_buffers(plugin: Any) -> dict[str, WeakKeyDictionary[Any, Any]]:
    return {
        name: value for name, value in getattr(plugin, "__dict__", {}).items() if isinstance(value, WeakKeyDictionary)
    }


async def _use(parameter: str) -> None:
    """Makes use of what a plugin provides: a prefix, a parameter of the agent, an option of a call, or a method."""
    kind, dot, prefix = parameter.partition(".")
    if kind == "model" and dot:
        await Agent(model=f"{prefix}:any").invoke_async("Go.")
    elif kind == "sandbox" and dot:
        agent: Any = Agent(model=ScriptedModel(["Hello."]), sandbox=f"{prefix}:any")
        getattr(agent, "sandbox", None)
    elif kind == "session" and dot:
        store_of(f"{prefix}://any")
    elif parameter in inspect.signature(Agent).parameters:
        values: dict[str, Any] = {parameter: object()}
        await Agent(**{"model": ScriptedModel(["Hello."]), **values}).invoke_async("Go.")
    elif hasattr(Agent, parameter):
        method = getattr(Agent(model=ScriptedModel(["Hello."])), parameter)
        kinds = [each.kind for each in inspect.signature(method).parameters.values()]
        answer = method(object()) if inspect.Parameter.POSITIONAL_OR_KEYWORD in kinds else method()
        if inspect.isawaitable(answer):
            await answer
    else:
        options: Any = {parameter: object()}
        await Agent(model=ScriptedModel(["Hello."])).invoke_async("Go.", **options)
