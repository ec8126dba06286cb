"""From a text to a store, through the plugin that owns the scheme."""

from __future__ import annotations

import pytest

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.sessions import SessionException
from ropewalk.kits.sessions.opening import opened, store_of

PLUGIN = """
from ropewalk.markers import hookimpl


class Store:
    def __init__(self, spec):
        self.spec, self.closed = spec, False

    def read(self, key): ...
    async def lease(self, key): ...
    async def append(self, key, records, position): ...
    async def replace(self, key, records, position): ...
    def logs(self, session_id=None): return []
    def delete(self, session_id): return False
    def close(self): self.closed = True


class Plugin:
    name = "{name}"

    @hookimpl
    async def on_event(self, event): ...

    def open_store(self, spec):
        return {made}
"""


def plugin(site, name, *schemes, made="Store(spec)"):
    owned = [f"session.{scheme}" for scheme in schemes]
    site.plugin(name, on_demand=True, parameters=owned, source=PLUGIN.format(name=name, made=made))


@pytest.mark.parametrize(
    ("spec", "owner"),
    [
        ("folder", "folders"),
        ("./a:b", "folders"),
        ("C:\\sessions", "folders"),
        ("file:///folder", "folders"),
        ("redis://host/0", "caches"),
        ("REDIS://host/0", "caches"),
        ("redis+tls://host/0", "caches"),
    ],
)
def test_the_owner_of_the_scheme_makes_the_store(site, spec, owner):
    plugin(site, "folders", "file")
    plugin(site, "caches", "redis")
    store = store_of(spec)

    assert (store.spec, type(store).__module__) == (spec, f"fake_{owner}")


def test_without_a_text_the_environment_is_asked_and_then_the_plugin_of_folders(site, monkeypatch):
    plugin(site, "folders", "file")
    plugin(site, "caches", "redis")
    assert store_of().spec is None

    monkeypatch.setenv("ROPEWALK_STORE", "redis://host/0")
    assert store_of().spec == "redis://host/0"
    assert store_of("folder").spec == "folder"


def test_a_store_is_closed_in_the_end(site):
    plugin(site, "folders", "file")
    with opened("folder") as store:
        assert not store.closed

    assert store.closed


def test_a_store_whose_plugin_is_missing_says_what_to_install(site):
    with pytest.raises(MissingPluginError, match="pip install ropewalk-session-file"):
        store_of()

    with pytest.raises(MissingPluginError, match=r"sqlite://\.\.\. .*ropewalk-session-sql"):
        store_of("sqlite:///file")


def test_a_scheme_that_nobody_owns_is_refused_without_its_password(site):
    plugin(site, "folders", "file")
    with pytest.raises(PluginError, match=r"no installed plugin owns 'session\.redis': installed are file") as caught:
        store_of("redis://user:secret@host")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("spec", ["", "  ", "sqlite:file.db", "SQLITE:file.db"])
def test_a_text_that_means_nothing_is_refused(site, spec):
    plugin(site, "folders", "file")
    with pytest.raises(SessionException, match="store="):
        store_of(spec)


@pytest.mark.parametrize("spec", ["  ", "sqlite:file.db"])
def test_a_text_of_the_environment_that_means_nothing_is_named_so(site, spec, monkeypatch):
    plugin(site, "folders", "file")
    monkeypatch.setenv("ROPEWALK_STORE", spec)
    with pytest.raises(SessionException, match=rf"^ROPEWALK_STORE='{spec}'"):
        store_of()


def test_a_plugin_that_makes_no_stores_is_named(site):
    site.plugin("caches", on_demand=True, parameters=["session.redis"])
    with pytest.raises(PluginError, match=r"plugin 'caches' owns session\.redis and has no open_store"):
        store_of("redis://host")


def test_what_is_no_store_is_refused(site):
    plugin(site, "caches", "redis", made="object()")
    with pytest.raises(PluginError, match="plugin 'caches' made a object, which is no store"):
        store_of("redis://host")


def test_a_plugin_that_is_switched_off_is_not_used(site, monkeypatch):
    plugin(site, "folders", "file")
    monkeypatch.setenv("ROPEWALK_PLUGINS", "-folders")
    with pytest.raises(MissingPluginError, match="plugin 'folders' is switched off by ROPEWALK_PLUGINS"):
        store_of("folder")


def test_another_owner_of_the_scheme_is_used_when_the_first_is_switched_off(site, monkeypatch):
    plugin(site, "a-folders", "file")
    plugin(site, "b-folders", "file")
    assert type(store_of("folder")).__module__ == "fake_a_folders"

    monkeypatch.setenv("ROPEWALK_PLUGINS", "-a-folders")
    assert type(store_of("folder")).__module__ == "fake_b_folders"
