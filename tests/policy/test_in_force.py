"""A policy stays in force whatever an agent, the environment and other plugins say; trying is logged."""

from __future__ import annotations

import importlib

import pytest

from ropewalk import Agent, MissingPluginError, PluginError, hookimpl
from ropewalk.kits.calls.verdicts import Refuse
from ropewalk.kits.hooks import policy as policies
from ropewalk_testing import ScriptedModel, use


async def nothing(moment, subject, agent):
    return Refuse("nothing runs") if moment == "before_tool_call" else None


async def is_denied(agent, results):
    await agent.invoke_async("Go.")
    return results(agent) == {"T1": ("error", "DENIED: nothing runs")}


async def test_an_agent_cannot_leave_it_out(govern, make_agent, results, caplog):
    govern(nothing)

    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=["-guard"])

    assert await is_denied(agent, results)
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [("ropewalk.policy", "WARNING")]
    assert "plugins=['-guard'] tries to switch off or replace the policy 'guard'" in caplog.text


@pytest.mark.parametrize("value", ["-guard", "none,-guard", "none"])
async def test_the_environment_cannot_leave_it_out(govern, make_agent, results, ropewalk_env, caplog, value):
    govern(nothing)
    ropewalk_env.setenv("ROPEWALK_PLUGINS", value)

    agent = make_agent(use("safe", {}, id="T1"), "done", callback_handler=None)

    assert await is_denied(agent, results)
    assert ("ROPEWALK_PLUGINS tries to switch off" in caplog.text) == ("-guard" in value)


class Impostor:
    """Bears the policy's name and allows everything."""

    name = "guard"

    @hookimpl
    async def intervene(self, moment): ...


@pytest.mark.parametrize(
    "given", [{"plugins": [Impostor()]}, {"plugins": [Impostor]}, {"conversation_manager": Impostor()}]
)
def test_a_plugin_of_its_name_is_refused(govern, caplog, given):
    govern(nothing)

    with pytest.raises(PluginError, match="'guard', the name of a policy in force: rename it"):
        Agent(model=ScriptedModel([]), callback_handler=None, **given)

    assert "ropewalk.policy" in [entry.name for entry in caplog.records]


def test_a_plugin_of_its_name_cannot_be_added_later(govern, make_agent, caplog):
    govern(nothing)
    agent = make_agent("hello")

    with pytest.raises(PluginError, match="the name of a policy in force"):
        agent.add_plugin(Impostor())

    assert "tries to switch off or replace" in caplog.text


async def test_plugins_that_are_added_later_do_not_displace_it(govern, make_agent, results, plugin):
    async def intervene(self, moment):
        return None

    govern(nothing)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=["-guard"])
    agent.add_plugin(plugin("later", order=-9, intervene=intervene))

    assert await is_denied(agent, results)


@pytest.mark.parametrize("entry", ["guard", ("guard", {})])
async def test_naming_it_changes_nothing(govern, make_agent, results, entry):
    govern(nothing)

    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=[entry])

    assert await is_denied(agent, results)
    assert [plugin.name for plugin in agent.hooks.plugins].count("guard") == 1


@pytest.mark.parametrize("value", [None, "", "another"])
async def test_a_change_of_the_environment_comes_too_late(govern, make_agent, results, ropewalk_env, value):
    govern(nothing)
    make_agent("hello")
    if value is None:
        ropewalk_env.delenv("ROPEWALK_POLICY")
    else:
        ropewalk_env.setenv("ROPEWALK_POLICY", value)

    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=["-guard"])

    assert await is_denied(agent, results)


async def test_a_policy_of_the_administrators_file_counts_as_well(
    govern, site, make_agent, results, ropewalk_env, tmp_path
):
    file = tmp_path / "admin.toml"
    file.write_text('[policy]\nplugins = ["guard"]\n')
    ropewalk_env.setattr(policies, "ADMIN_FILE", file)
    govern(nothing)
    site.install("other")
    ropewalk_env.setenv("ROPEWALK_POLICY", "other")

    agent = make_agent(use("safe", {}, id="T1"), "done")

    assert {"guard", "other"} <= {plugin.name for plugin in agent.hooks.plugins}
    assert await is_denied(agent, results)


async def test_two_policies_are_both_asked(govern, site, make_agent, ropewalk_env):
    asked = []

    def notes(name):
        async def rule(moment, subject, agent):
            asked.append((name, moment))

        return rule

    govern(notes("guard"))
    importlib.import_module(site.install("warden")).GuardPlugin.rule = staticmethod(notes("warden"))
    ropewalk_env.setenv("ROPEWALK_POLICY", "guard, warden")

    await make_agent("hello").invoke_async("Go.")

    assert sorted(asked[:2]) == [("guard", "before_invocation"), ("warden", "before_invocation")]


def test_its_digest_stands_in_the_record_of_every_run(govern, make_agent, plugin):
    written = []

    async def write(self, records):
        written.extend(records)

    govern(nothing)
    make_agent("hello", plugins=[plugin("log", write_records=write)])("Go.")

    started = [record.data for record in written if record.kind == "run_started"]
    assert [data["policies"] for data in started] == [policies.policy_digest()]
    assert len(policies.policy_digest()) == 64


# -- no agent without them ---------------------------------------------------------------------------------------

BUILD = [{}, {"plugins": ["-guard"]}, {"plugins": []}]


def build(**parameters):
    return Agent(model=ScriptedModel([]), callback_handler=None, **parameters)


@pytest.mark.parametrize("parameters", BUILD)
def test_a_policy_that_is_not_installed_lets_no_agent_be_built(ropewalk_env, site, parameters):
    ropewalk_env.setenv("ROPEWALK_POLICY", "guard")

    for _ in range(2):
        with pytest.raises(PluginError, match="ROPEWALK_POLICY names 'guard', which: there is no plugin 'guard'"):
            build(**parameters)


def test_a_known_policy_that_is_not_installed_says_what_to_install(ropewalk_env, site):
    ropewalk_env.setenv("ROPEWALK_POLICY", "hook-trace")

    with pytest.raises(MissingPluginError, match="pip install ropewalk-hook-trace"):
        build()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("raise SystemExit(0)", "SystemExit"),
        ("GuardPlugin = 3", "is int and not a plugin class"),
        ("class GuardPlugin:\n    name = 'guard'\n    tier = 'policy'", "is no plugin"),
        ("class GuardPlugin:\n    name = 'guard'\n    tier = 'policy'\n    def __init__(self, key): ...", "key"),
    ],
)
@pytest.mark.parametrize("parameters", BUILD)
def test_a_broken_policy_lets_no_agent_be_built(ropewalk_env, site, source, message, parameters):
    site.install("guard", source=source.replace("{", "{{").replace("}", "}}"))
    ropewalk_env.setenv("ROPEWALK_POLICY", "guard")

    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            build(**parameters)


@pytest.mark.parametrize("tier", ["normal"])
def test_a_plugin_of_another_tier_lets_no_agent_be_built(ropewalk_env, site, tier):
    site.install("guard", tier=tier)
    ropewalk_env.setenv("ROPEWALK_POLICY", "guard")

    with pytest.raises(
        PluginError, match=f"'guard', a plugin of the tier '{tier}': a policy's class has tier = \"policy\""
    ):
        build()


async def test_an_installed_policy_that_nobody_named_is_an_ordinary_plugin(site, make_agent, results):
    importlib.import_module(site.install("guard")).GuardPlugin.rule = staticmethod(nothing)

    assert await is_denied(make_agent(use("safe", {}, id="T1"), "done"), results)
    agent = make_agent(use("safe", {}, id="T1"), "done", plugins=["-guard"])
    assert not await is_denied(agent, results)
