from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.errors import PluginError
from ropewalk.kits.hooks import assemble, discovery
from ropewalk.kits.hooks.discovery import registry


def test_plugins_are_found_with_distribution_version_and_parameters(site):
    site.add(
        "big-one",
        version="2.5",
        plugins={"b": "mod:B", "a": "mod:A"},
        on_demand={"b": "mod:B"},
        parameters={"sandbox": "mod:A", "model.x": "mod:B"},
    )
    first, second = registry().installed.values()

    assert (first.name, first.distribution, first.version, first.on_demand, first.provides) == (
        "a", "big-one", "2.5", False, ("sandbox",),
    )  # fmt: skip
    assert (second.name, second.on_demand, second.provides) == ("b", True, ("model.x",))
    assert registry().owners == {"sandbox": ("a",), "model.x": ("b",)}
    assert first.label == "entry point a = mod:A of big-one 2.5"


def test_nothing_is_imported_until_it_is_needed(site):
    site.plugin("one")
    assert set(registry().installed) == {"one"}
    assert "fake_one" not in sys.modules

    assemble(None, {}, None)
    assert "fake_one" in sys.modules


def test_the_entry_points_are_read_once(site):
    site.plugin("one")
    before = registry()
    (site.folder / "late-1.0.dist-info").mkdir()

    assert registry() is before
    discovery.refresh()
    assert registry() is not before


def test_one_distribution_seen_twice_on_the_path_counts_once(site, tmp_path, monkeypatch):
    stray = tmp_path / "stray"
    site.add("my-plugin", version="2.0", plugins={"p": "mod:P"})
    site.add("My_Plugin", version="1.0", plugins={"p": "mod:P"}, folder=stray, suffix="egg-info")
    monkeypatch.setattr("importlib.metadata.distributions", _both(site.folder, stray))
    discovery.refresh()

    assert registry().installed["p"].version == "2.0"
    assert registry().installed["p"].rivals == ()


def _both(*folders: Path):
    import importlib.metadata

    return lambda: importlib.metadata.MetadataPathFinder.find_distributions(
        importlib.metadata.DistributionFinder.Context(path=[str(folder) for folder in folders])
    )


def test_two_distributions_with_one_name_are_an_error_when_it_would_be_active(site):
    site.add("left", version="1.0", plugins={"same": "left:L"})
    site.add("right", version="2.0", plugins={"same": "right:R"}, on_demand={"same": "right:R"})

    with pytest.raises(PluginError) as caught:
        assemble(None, {}, None)

    assert "left 1.0 (left:L) and by right 2.0 (right:R)" in str(caught.value)
    assert "ROPEWALK_PLUGINS=-same" in str(caught.value)
    assert assemble(["-same"], {}, None).plugins == ()


def test_two_distributions_with_one_name_on_demand_are_logged_and_an_error_when_asked_for(site, caplog):
    for name in ("left", "right"):
        site.add(
            name, plugins={"same": f"{name}:P"}, on_demand={"same": f"{name}:P"}, parameters={"model.x": f"{name}:P"}
        )

    with caplog.at_level(logging.WARNING, logger="ropewalk.hooks"):
        assert assemble(None, {}, None).plugins == ()

    assert "the plugin name same is brought by left 1.0 (left:P) and by right 1.0 (right:P)" in caplog.text
    assert registry().installed["same"].provides == ("model.x",)
    with pytest.raises(PluginError, match=r"left 1\.0 .* and by right 1\.0"):
        assemble(["same"], {}, None)


def test_a_parameter_that_belongs_to_no_plugin_is_logged(site, caplog):
    site.add("odd", plugins={"p": "mod:P"}, parameters={"sandbox": "mod:Other"})

    with caplog.at_level(logging.WARNING, logger="ropewalk.hooks"):
        assert registry().owners == {}

    assert "odd 1.0: sandbox in group ropewalk.parameters is no plugin of its group ropewalk.plugins" in caplog.text


def test_a_distribution_whose_metadata_cannot_be_read_is_named_and_skipped(site, caplog):
    site.plugin("good")
    site.write("bad", "1.0", "[ropewalk.plugins]\nno equals sign here\n", site.folder)
    (site.folder / "worse-1.0.dist-info").mkdir()
    (site.folder / "worse-1.0.dist-info" / "entry_points.txt").write_text("[ropewalk.plugins]\np = m:P\n")

    with caplog.at_level(logging.WARNING, logger="ropewalk.hooks"):
        assert set(registry().installed) == {"good"}

    assert "bad 1.0" in caplog.text
    assert "the metadata in" in caplog.text
    assert "install it anew" in caplog.text
    assert "Traceback" not in caplog.text


def test_distributions_on_the_real_path_are_found(tmp_path):
    info = tmp_path / "real_one-3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: real-one\nVersion: 3.0\n")
    (info / "entry_points.txt").write_text("[ropewalk.plugins]\nreal-one = real_one:P\n")
    code = "from ropewalk.kits.hooks.discovery import registry; print(registry().installed['real-one'].label)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.strip() == "entry point real-one = real_one:P of real-one 3.0", done.stderr
