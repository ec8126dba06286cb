"""Every package has the same shape."""

from __future__ import annotations

import importlib.metadata
import re

VERSION_LITERAL = re.compile(r'(?m)^__version__(?:: \S+)? = "(.+)"')


def core_requirement(package):
    return [entry for entry in package.project.get("dependencies", []) if entry.startswith("ropewalk")]


def test_the_distribution_is_named_after_the_folder(package):
    assert package.name == f"ropewalk-{package.short_name}"


def test_every_package_has_the_version_of_the_root_as_a_literal(package, meta):
    assert "dynamic" not in package.project
    assert package.project["version"] == meta.project["version"]
    for module in package.modules:
        assert set(VERSION_LITERAL.findall(module.read_text())) <= {meta.project["version"]}, module


def test_requirements_within_the_repository_name_that_version_exactly(package, meta):
    for one in (package, meta):
        extras = one.project.get("optional-dependencies", {}).values()
        wanted = [*one.project.get("dependencies", []), *(entry for extra in extras for entry in extra)]
        inside = [entry for entry in wanted if entry.startswith("ropewalk")]
        assert all(entry.endswith(f"=={meta.project['version']}") for entry in inside), inside


def test_every_package_is_built_with_hatchling_from_its_source_folder(package):
    assert package.data["build-system"]["build-backend"] == "hatchling.build"
    wheel = package.data["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == [f"src/{package.import_name}"]


def test_every_package_supports_the_same_pythons_under_the_same_licence(package, meta):
    assert package.project["requires-python"] == meta.project["requires-python"]
    assert package.project["license"] == meta.project["license"]


def test_every_package_has_a_readme_with_a_title(package):
    assert package.project["readme"] == "README.md"
    assert (package.path / "README.md").read_text().startswith(f"# {package.name}\n")


def test_every_package_is_typed(package):
    assert (package.source / "py.typed").is_file()


def test_every_package_has_tests_of_its_own(package):
    assert list((package.path / "tests").rglob("test_*.py"))


def test_every_plugin_depends_on_the_kernel_and_on_no_other_plugin(plugin, meta):
    assert core_requirement(plugin) == [f"ropewalk-core=={meta.project['version']}"]


def test_every_plugin_has_an_entry_point_of_its_own_name(plugin):
    entries = plugin.entry_points("ropewalk.plugins")
    assert plugin.short_name in entries
    for value in entries.values():
        assert value.split(":")[0].split(".")[0] == plugin.import_name


def test_every_entry_point_loads_a_plugin_that_bears_its_name(plugin):
    for name, value in plugin.entry_points("ropewalk.plugins").items():
        loaded = importlib.metadata.EntryPoint(name, value, "ropewalk.plugins").load()
        assert loaded.name == name


def test_the_other_groups_speak_of_the_same_plugins(plugin):
    plugins = plugin.entry_points("ropewalk.plugins")
    on_demand = plugin.entry_points("ropewalk.on_demand")
    assert on_demand.items() <= plugins.items()
    assert set(plugin.entry_points("ropewalk.parameters").values()) <= set(plugins.values())
