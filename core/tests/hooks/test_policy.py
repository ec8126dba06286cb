from __future__ import annotations

import hashlib

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble, policy
from ropewalk.kits.hooks.policy import is_policy, policies, policy_digest

GUARD = """
from ropewalk.markers import hookimpl

class Plugin:
    name = "{name}"
    tier = "{tier}"

    @hookimpl
    async def intervene(self, moment): ...
"""


def install(site, name, tier="policy"):
    site.plugin(name, on_demand=True, source=GUARD.format(name=name, tier=tier))


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """The administrator's file; not there until a test writes it."""
    path = tmp_path / "admin.toml"
    monkeypatch.setattr(policy, "ADMIN_FILE", path)
    return path


def test_without_any_there_are_none(site):
    assert (policies(), policy_digest()) == ({}, "")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("guard", "", {"guard"}),
        (" guard , ,warden,", "", {"guard", "warden"}),
        ("", '[policy]\nplugins = ["guard"]', {"guard"}),
        ("guard", '[policy]\nplugins = ["warden"]', {"guard", "warden"}),
        ("guard", '[policy]\nplugins = ["guard"]', {"guard"}),
        ("guard", "[policy]", {"guard"}),
        ("guard", "[plugins.other]\nx = 1", {"guard"}),
        (",", "", set()),
    ],
)
def test_variable_and_file_both_count(site, monkeypatch, file, variable, text, expected):
    install(site, "guard")
    install(site, "warden")
    monkeypatch.setenv("ROPEWALK_POLICY", variable)
    if text:
        file.write_text(text)

    assert set(policies()) == expected


def test_they_are_read_once(site, monkeypatch, file):
    install(site, "guard")
    monkeypatch.setenv("ROPEWALK_POLICY", "guard")
    before = policies()
    monkeypatch.delenv("ROPEWALK_POLICY")
    file.write_text("nonsense")

    assert policies() is before
    assert list(before) == ["guard"]


WRONG_FILES = {
    "no toml": ("nonsense", "cannot be read .*: mend the file"),
    "a text": ('[policy]\nplugins = "guard"', r"\[policy\] plugins is 'guard': write plugins = "),
    "a number": ("[policy]\nplugins = [1]", r"plugins is \[1\]"),
    "no table": ("policy = 1", "plugins is None"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_that_is_wrong_lets_no_agent_be_built(site, file, text, message):
    file.write_text(text)
    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            assemble(None, {}, None)


def test_a_file_that_is_no_utf8_lets_no_agent_be_built(site, file):
    file.write_bytes(b"\xff")
    with pytest.raises(PluginError, match="mend the file"):
        assemble(None, {}, None)


def test_a_policy_that_is_not_installed_names_its_source(site, file):
    file.write_text('[policy]\nplugins = ["guard"]')
    with pytest.raises(PluginError, match=r"admin.toml names 'guard', which.*there is no plugin 'guard'"):
        policies()


def test_a_known_policy_that_is_not_installed_says_what_to_install(site, monkeypatch):
    monkeypatch.setenv("ROPEWALK_POLICY", "telemetry")
    with pytest.raises(MissingPluginError, match="ROPEWALK_POLICY names 'telemetry'"):
        policies()


def test_a_policy_of_two_distributions_is_refused(site, monkeypatch):
    site.add("left", plugins={"guard": "left:P"})
    site.add("right", plugins={"guard": "right:P"})
    monkeypatch.setenv("ROPEWALK_POLICY", "guard")

    with pytest.raises(PluginError, match=r"brought by left 1.0 .* and by right 1.0"):
        policies()


@pytest.mark.parametrize("tier", ["normal", "observer"])
def test_another_tier_is_refused(site, monkeypatch, tier):
    source = GUARD.format(name="guard", tier=tier)
    if tier == "observer":
        source = source.replace("async def intervene(self, moment)", "async def on_event(self, event)")

    site.plugin("guard", source=source)
    monkeypatch.setenv("ROPEWALK_POLICY", "guard")

    with pytest.raises(PluginError, match=f"names 'guard', a plugin of the tier '{tier}'"):
        assemble(["-guard"], {}, None)


def test_it_takes_part_whatever_is_asked_for(site, monkeypatch):
    install(site, "guard")
    monkeypatch.setenv("ROPEWALK_POLICY", "guard")

    for variable in ("", "none", "-guard", "none,-guard"):
        monkeypatch.setenv("ROPEWALK_PLUGINS", variable)
        for plugins in (None, [], ["-guard"], ["guard"]):
            assert [plugin.name for plugin in assemble(plugins, {}, None).plugins] == ["guard"]


def test_a_try_to_switch_it_off_is_logged_with_its_origin(site, monkeypatch, caplog):
    install(site, "guard")
    monkeypatch.setenv("ROPEWALK_POLICY", "guard")

    assert is_policy("guard", "plugins=['-guard']")
    assert not is_policy("other", "plugins=['-other']")
    assert [(entry.name, entry.getMessage()) for entry in caplog.records] == [
        ("ropewalk.policy", "plugins=['-guard'] tries to switch off or replace the policy 'guard': it stays in force")
    ]


def test_the_digest_tells_names_distributions_and_versions(site, monkeypatch):
    install(site, "warden")
    install(site, "guard")
    monkeypatch.setenv("ROPEWALK_POLICY", "warden,guard")

    expected = hashlib.sha256(b"guard fake-guard 1.0\nwarden fake-warden 1.0").hexdigest()
    assert policy_digest() == expected
