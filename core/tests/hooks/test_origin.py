from __future__ import annotations

import pluggy

from ropewalk.kits.hooks.origin import origin_of


def test_a_class_of_an_installed_plugin_is_traced_to_its_distribution(site):
    site.plugin("one")
    import fake_one

    assert origin_of(fake_one.Plugin) == "fake-one 1.0"


def test_any_other_installed_class_is_traced_too():
    assert origin_of(pluggy.PluginManager) == f"pluggy {pluggy.__version__}"


def test_a_class_of_no_distribution_is_traced_to_its_module():
    local = type("Local", (), {"__module__": "my_program.plugins"})

    assert origin_of(local) == "module my_program.plugins"
    assert origin_of(int) == "module builtins"
    assert origin_of(type("Main", (), {"__module__": "__main__"})) == "module __main__"
