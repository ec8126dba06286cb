"""The lists that name every package agree with the folders: `python3 dev.py packages` writes them."""

from __future__ import annotations

import importlib.util
import re

from ropewalk.kits.hooks.names import NAMES
from ropewalk.kits.hooks.parameters import BUNDLED, EXTRAS

FIX = "run: python3 dev.py packages"


def requirement_names(requirements):
    return [re.split(r"[=<>~!\[; ]", entry)[0] for entry in requirements]


def test_the_requirements_file_lists_every_package(root, packages):
    lines = (root / "requirements-dev.txt").read_text().splitlines()
    editable = [line.removeprefix("-e ") for line in lines if line.startswith("-e ")]
    assert sorted(editable) == sorted([*(f"./{package.folder}" for package in packages), "."]), FIX


def test_the_root_distribution_depends_on_the_kernel(meta):
    assert requirement_names(meta.project["dependencies"])[0] == "ropewalk-core"


def test_every_plugin_is_bundled_or_has_an_extra_but_not_both(meta, plugins):
    bundled = set(requirement_names(meta.project["dependencies"])) - {"ropewalk-core"}
    extras = {name: requirement_names(wanted) for name, wanted in meta.project["optional-dependencies"].items()}
    extras.pop("all")
    assert bundled | {f"ropewalk-{name}" for name in extras} == {plugin.name for plugin in plugins}, FIX
    assert not bundled & {f"ropewalk-{name}" for name in extras}
    assert all(wanted == [f"ropewalk-{name}"] for name, wanted in extras.items())


def test_the_extra_all_is_the_sum_of_the_extras(meta):
    extras = dict(meta.project["optional-dependencies"])
    everything = extras.pop("all")
    assert sorted(everything) == sorted(entry for wanted in extras.values() for entry in wanted), FIX


def test_the_kernel_knows_every_plugin_as_what_it_is(meta, plugins):
    bundled = set(requirement_names(meta.project["dependencies"]))
    for plugin in plugins:
        known, where = (BUNDLED, "BUNDLED") if plugin.name in bundled else (EXTRAS, "EXTRAS")
        assert plugin.short_name in known, f"add {plugin.short_name!r} to ropewalk.kits.hooks.parameters.{where}"


def test_the_uv_workspace_knows_every_package(meta, packages):
    assert set(meta.data["tool"]["uv"]["sources"]) == {package.name for package in packages}, FIX


def test_the_import_contracts_name_every_package(meta, packages):
    names = {package.import_name for package in packages}
    settings = meta.data["tool"]["importlinter"]
    contracts = {contract["id"]: contract for contract in settings["contracts"]}
    assert set(settings["root_packages"]) == names, FIX
    assert set(contracts["kernel"]["forbidden_modules"]) == names - {"ropewalk"}, FIX
    assert set(contracts["plugins"]["modules"]) == names - {"ropewalk"}, FIX
    assert set(contracts["heavy"]["source_modules"]) == names, FIX


def test_the_tables_in_agents_and_readme_name_every_package(root, packages):
    for file in ("AGENTS.md", "README.md"):
        text = (root / file).read_text()
        rows = set(re.findall(r"(?m)^\| `((?:core|plugins/|contrib/)[^`]*)`.*$", text))
        assert rows == {package.folder for package in packages}, f"table of packages in {file}"


def test_the_table_in_agents_has_the_right_names(root, packages):
    text = (root / "AGENTS.md").read_text()
    for package in packages:
        assert f"| `{package.folder}` | {package.name} | `{package.import_name}` |" in text


def test_agents_stays_one_short_page(root):
    assert len((root / "AGENTS.md").read_text().splitlines()) <= 80


def test_writing_the_lists_again_changes_nothing(root):
    spec = importlib.util.spec_from_file_location("dev", root / "dev.py")
    dev = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dev)
    lists = dev.package_lists()
    assert lists
    for path, text in lists.items():
        assert path.read_text() == text, FIX


def test_a_type_checker_sees_every_public_name_of_the_plugins_that_are_here(root, packages):
    text = (root / "core/src/ropewalk/kits/hooks/plugin_names.py").read_text()
    here = {package.folder.split("/")[1].replace("-", "_") for package in packages if package.folder != "core"}
    wanted = {
        f"from {module} import {name} as {name}"
        for name, (module, _) in NAMES.items()
        if module.removeprefix("ropewalk_") in here
    }
    assert {line.strip() for line in text.splitlines() if line.startswith("    from")} == wanted
