from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble
from ropewalk.kits.hooks.facade import Hooks
from ropewalk.kits.hooks.signatures import HOOKS
from ropewalk.markers import hookimpl


@pytest.fixture(autouse=True)
def _any_answer(monkeypatch):
    """The calls are looked at here, not what a hook may answer (test_garbage.py)."""
    monkeypatch.setattr("ropewalk.kits.hooks.answers._RULES", {})


EMPTY = {"provide_tools": [], "provide_commands": []}
NOBODY = {**EMPTY, "intervene": ("subject", None)}
PLAIN = [hook for hook, spec in HOOKS.items() if not spec.is_chain and hook != "manage_context"]


def record(seen, name="all"):
    """A plugin that implements every hook and notes what it was called with."""
    namespace: dict[str, object] = {"seen": seen}
    body: dict[str, object] = {"name": name}
    for hook, spec in HOOKS.items():
        if hook == "on_hook_call":
            continue  # an observer's: with it every other hook would be traced

        arguments = ", ".join(spec.arguments)
        answer = "await call_next('next')" if spec.is_chain else EMPTY.get(hook)
        exec(
            f"{'async ' if spec.is_async else ''}def {hook}(self, {arguments}):\n"
            f"    seen.append(('{hook}', ({arguments}{',' if arguments else ''})))\n"
            f"    return {answer}",
            namespace,
        )
        body[hook] = hookimpl(namespace[hook])

    return type("All", (), body)()


def test_every_hook_has_a_method_with_the_specified_arguments():
    for hook, spec in HOOKS.items():
        signature = inspect.signature(getattr(Hooks, hook)).parameters.values()
        parameters = tuple(p.name for p in signature if p.kind is not p.KEYWORD_ONLY)[1:]
        assert parameters == (("inner", "agent") if spec.is_chain else spec.arguments)


@pytest.mark.parametrize("hook", [hook for hook in PLAIN if hook != "on_hook_call"])
async def test_every_method_calls_its_hook_with_all_arguments_in_order(hook):
    seen = []
    hooks = Hooks.of([record(seen)])
    values = tuple(f"v{index}" for index, _ in enumerate(HOOKS[hook].arguments))
    result = getattr(hooks, hook)(*values)
    if inspect.isawaitable(result):
        await result

    assert seen == [(hook, values)]


@pytest.mark.parametrize("hook", [hook for hook, spec in HOOKS.items() if spec.is_chain])
async def test_every_chain_hands_on_subject_and_agent(hook):
    seen = []

    async def inner(subject):
        return f"<{subject}>"

    assert await getattr(Hooks.of([record(seen)]), hook)(inner, "agent")("subject") == "<next>"
    assert [(name, values[0], values[2]) for name, values in seen] == [(hook, "subject", "agent")]


@pytest.mark.parametrize("hook", PLAIN)
async def test_a_hook_that_nobody_implements_has_an_empty_answer(hook):
    result = getattr(Hooks.of([]), hook)(*HOOKS[hook].arguments)
    assert (await result if inspect.isawaitable(result) else result) == NOBODY.get(hook)


async def test_context_edits_come_one_plugin_at_a_time():
    asked = []

    class Editor:
        name = "editor"

        def __init__(self, name, edits):
            self.name, self.edits = name, edits

        @hookimpl
        async def manage_context(self, request, reason):
            asked.append((self.name, request, reason))
            return self.edits

    hooks = Hooks.of([Editor("a", ["A"]), Editor("b", None), Editor("c", []), Editor("d", ["D"])])
    taken = []

    def take(plugin, edits):
        taken.append((plugin, edits))
        assert [name for name, *_ in asked] == [name for name, _ in taken]

    await hooks.manage_context("request", "overflow", None, take=take)

    assert asked[0] == ("a", "request", "overflow")
    assert taken == [("a", ["A"]), ("b", None), ("c", []), ("d", ["D"])]


@pytest.mark.parametrize(
    ("reasons", "asked"),
    [
        (None, ["after_invocation", "after_tools", "before_model", "overflow"]),
        (("overflow",), ["overflow"]),
        ({"overflow", "before_model"}, ["before_model", "overflow"]),
        ((), []),
    ],
)
async def test_a_plugin_is_asked_for_the_reasons_that_it_names(reasons, asked):
    class Manager:
        name = "manager"
        context_reasons = reasons

        def __init__(self):
            self.seen = []

        @hookimpl
        async def manage_context(self, reason):
            self.seen.append(reason)

    manager, other = Manager(), Manager()
    other.name, other.context_reasons = "other", ["after_tools"]
    hooks = Hooks.of([manager, other])
    for reason in ("after_invocation", "after_tools", "before_model", "overflow"):
        await hooks.manage_context("request", reason, None, take=lambda *_: None)

    assert (manager.seen, other.seen) == (asked, ["after_tools"])


def test_hooks_cannot_hold_an_agent():
    assert Hooks.__slots__ == ("given", "managers", "off", "own", "plan", "plugins")


# -- with_plugin -----------------------------------------------------------------------------------------------------


def test_a_plugin_added_later_comes_after_the_agents_own_and_before_the_others(site):
    site.plugin("auto")
    first, second = record([], "first"), record([], "second")
    before = assemble([first], {}, None)
    after = before.with_plugin(second)

    assert [plugin.name for plugin in before.plugins] == ["first", "auto"]
    assert [plugin.name for plugin in after.plugins] == ["first", "second", "auto"]


def test_a_plugin_added_later_replaces_the_active_one_of_its_name(site):
    site.plugin("auto")
    mine = record([], "auto")

    assert assemble(None, {}, None).with_plugin(mine).plugins == (mine,)


def test_a_second_plugin_of_one_name_is_refused():
    hooks = Hooks.of([record([], "one")])

    with pytest.raises(PluginError, match="two plugins of this agent are named 'one'"):
        hooks.with_plugin(record([], "one"))

    assert hooks.with_plugin(hooks.plugins[0]).plugins == hooks.plugins


def test_a_plugin_can_be_added_by_name_or_with_options(site):
    site.plugin("later", on_demand=True)
    hooks = assemble(None, {}, None)

    assert [plugin.name for plugin in hooks.with_plugin("later").plugins] == ["later"]
    assert hooks.with_plugin("later").with_plugin("later").plugins == hooks.with_plugin("later").plugins
    with pytest.raises(PluginError, match="takes no options"):
        hooks.with_plugin(("later", {"size": 1}))


def test_what_is_not_installed_cannot_be_added(site):
    with pytest.raises(MissingPluginError, match="pip install ropewalk-memory"):
        Hooks.of([]).with_plugin("memory")

    with pytest.raises(PluginError, match="switches a plugin off"):
        Hooks.of([]).with_plugin("-memory")


def test_importing_the_hooks_loads_neither_pydantic_nor_the_metadata_reader():
    code = (
        "import sys, ropewalk.kits.hooks; "
        "sys.exit(' '.join(m for m in ('pydantic', 'importlib.metadata', 'tomllib') if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
