from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from ropewalk.errors import MissingPluginError, PluginError
from ropewalk.kits.hooks import assemble, policy
from ropewalk.kits.hooks.options import OptionsError
from ropewalk.markers import hookimpl

SOURCE = """
from pydantic import BaseModel, Field
from ropewalk.markers import hookimpl

class Config(BaseModel):
    size: int = Field(default=1, ge=0)
    label: str = "none"
    names: list[str] = []

class Plugin:
    name = "{name}"
    Config = Config

    def __init__(self, config):
        self.config = config

    @hookimpl
    def on_delta(self): ...
"""


@pytest.fixture
def sized(site):
    site.plugin("sized", on_demand=True, source=SOURCE.format(name="sized"))
    return site


def config(entry="sized"):
    [plugin] = assemble([entry], {}, None).plugins
    return plugin.config


def test_without_options_the_defaults_hold(sized):
    assert config().model_dump() == {"size": 1, "label": "none", "names": []}


def test_the_pair_wins_over_the_file_and_the_file_over_the_environment(sized, tmp_path, monkeypatch):
    (tmp_path / "ropewalk.toml").write_text('[plugins.sized]\nsize = 2\nlabel = "file"\n')
    monkeypatch.setenv("ROPEWALK_SIZED_LABEL", "environment")
    monkeypatch.setenv("ROPEWALK_SIZED_NAMES", '["x", "y"]')

    assert config(("sized", {"size": 3})).model_dump() == {"size": 3, "label": "file", "names": ["x", "y"]}


def test_the_file_can_be_named_by_a_variable(sized, tmp_path, monkeypatch):
    (tmp_path / "elsewhere.toml").write_text("[plugins.sized]\nsize = 7\n")
    monkeypatch.setenv("ROPEWALK_CONFIG", str(tmp_path / "elsewhere.toml"))

    assert config().size == 7


def test_numbers_and_flags_are_read_from_text(sized, monkeypatch):
    monkeypatch.setenv("ROPEWALK_SIZED_SIZE", "12")
    monkeypatch.setenv("ROPEWALK_SIZED_LABEL", "[not a list]")

    assert (config().size, config().label) == (12, "[not a list]")


def test_a_variable_of_a_plugin_with_a_longer_name_is_not_taken(sized, monkeypatch):
    sized.plugin("sized-more", on_demand=True, source=SOURCE.format(name="sized-more"))
    monkeypatch.setenv("ROPEWALK_SIZED_MORE_SIZE", "5")

    assert config().size == 1
    assert config("sized-more").size == 5


FILE_SOURCE = r"\(in ropewalk\.toml \[plugins\.sized\]\)"
UNKNOWN = "plugin 'sized' has no option 'sise'"
WRONG = {
    "an unknown option in the pair": (
        ("sized", {"sise": 1}),
        "",
        {},
        rf"{UNKNOWN} \(in plugins=\): did you mean 'size'",
    ),
    "an unknown option in the file": ("sized", "[plugins.sized]\nsise = 1", {}, f"{UNKNOWN} {FILE_SOURCE}"),
    "an unknown option in the environment": (
        "sized",
        "",
        {"ROPEWALK_SIZED_SISE": "1"},
        rf"{UNKNOWN} \(in ROPEWALK_SIZED_SISE\): did you mean 'size'",
    ),
    "a wrong value in the pair": (("sized", {"size": -1}), "", {}, r"plugin 'sized' .*size: .* \(in plugins=\)"),
    "a wrong value in the file": ("sized", "[plugins.sized]\nsize = 'x'", {}, f"size: .* {FILE_SOURCE}"),
    "a wrong value in the environment": (
        "sized",
        "",
        {"ROPEWALK_SIZED_SIZE": "x"},
        r"size: .* \(in ROPEWALK_SIZED_SIZE\)",
    ),
    "an unknown plugin in the file": ("sized", "[plugins.sised]\nsize = 1", {}, r"'sised' .*did you mean 'sized'"),
    "an unknown section": ("sized", "[plugin.sized]\nsize = 1", {}, r"section 'plugin' .*did you mean 'plugins'"),
    "no table": ("sized", "plugins.sized = 3", {}, r"sized is no table: write \[plugins\.sized\]"),
    "no table of plugins": ("sized", "plugins = [3]", {}, r"plugins is no table: write \[plugins\.<name>\]"),
    "no TOML": ("sized", "[plugins", {}, r"ropewalk\.toml cannot be read \(.*\): correct what it says"),
    "a policy": ("sized", "[policy]\nplugins = ['x']", {}, r"\[policy\], which is read from /etc/ropewalk\.toml alone"),
    "a file that is not there": ("sized", "", {"ROPEWALK_CONFIG": "no.toml"}, "ROPEWALK_CONFIG names 'no.toml'"),
}


@pytest.mark.parametrize(("entry", "file", "variables", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_source(sized, tmp_path, monkeypatch, entry, file, variables, message):
    (tmp_path / "ropewalk.toml").write_text(file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(PluginError, match=message):
        assemble([entry], {}, None)


def test_the_file_may_not_configure_what_is_not_installed(sized, tmp_path):
    (tmp_path / "ropewalk.toml").write_text("[plugins.memory]\nsize = 1\n")

    with pytest.raises(MissingPluginError, match=r"\[plugins.memory\] in ropewalk.toml .*pip install ropewalk-memory"):
        assemble(None, {}, None)


def test_a_wrong_option_of_an_active_plugin_is_an_error_and_no_warning(site, tmp_path):
    site.plugin("sized", source=SOURCE.format(name="sized"))
    (tmp_path / "ropewalk.toml").write_text("[plugins.sized]\nsise = 1\n")

    with pytest.raises(OptionsError, match="sise"):
        assemble(None, {}, None)


def test_the_file_may_begin_with_the_mark_that_some_editors_write(sized, tmp_path):
    (tmp_path / "ropewalk.toml").write_text("\ufeff[plugins.sized]\nsize = 4", encoding="utf-8")
    assert config().size == 4


def test_the_administrators_file_may_hold_options_too(sized, tmp_path, monkeypatch):
    file = tmp_path / "admin.toml"
    file.write_text("[policy]\nplugins = []\n\n[plugins.sized]\nsize = 4", encoding="utf-8")
    monkeypatch.setattr(policy, "ADMIN_FILE", file)
    monkeypatch.setenv("ROPEWALK_CONFIG", str(file))

    assert config().size == 4


def test_a_folder_in_the_place_of_the_file_is_said(sized, tmp_path):
    (tmp_path / "ropewalk.toml").mkdir()
    with pytest.raises(PluginError, match=r"ropewalk\.toml cannot be read \(Is a directory\): make it a file"):
        assemble(None, {}, None)


def test_a_corrected_file_is_read_again(sized, tmp_path):
    (tmp_path / "ropewalk.toml").write_text("[plugins.sized]\nsise = 1\n")
    with pytest.raises(OptionsError):
        config()

    (tmp_path / "ropewalk.toml").write_text("[plugins.sized]\nsize = 11\n")
    assert config().size == 11


@pytest.mark.parametrize("source", ["plugins=", "ropewalk.toml"])
def test_options_for_a_plugin_that_takes_none_are_refused(site, tmp_path, source):
    site.plugin("plain", on_demand=True)
    if source == "ropewalk.toml":
        (tmp_path / "ropewalk.toml").write_text("[plugins.plain]\nsize = 1\n")

    with pytest.raises(OptionsError, match=f"plugin 'plain' takes no options and {source}.* has size"):
        assemble([("plain", {"size": 1}) if source == "plugins=" else "plain"], {}, None)


def test_an_option_that_is_missing_says_where_it_can_be_given(site, monkeypatch):
    source = SOURCE.replace("size: int = Field(default=1, ge=0)", "size: int").format(name="must-have")
    site.plugin("must-have", source=source)
    with pytest.raises(OptionsError) as caught:
        assemble(None, {}, None)

    assert str(caught.value) == (
        "options of plugin 'must-have' are wrong: size: Field required (give it in plugins=[('must-have', {...})], "
        "ropewalk.toml [plugins.must-have] or ROPEWALK_MUST_HAVE_SIZE)"
    )
    monkeypatch.setenv("ROPEWALK_MUST_HAVE_SIZE", "3")
    assert assemble(None, {}, None).plugins[0].config.size == 3


def test_a_config_that_is_no_pydantic_model_is_refused():
    class Odd:
        name = "odd"
        Config = dict

        @hookimpl
        def on_delta(self): ...

    with pytest.raises(PluginError, match=r"subclass of pydantic\.BaseModel"):
        assemble([Odd], {}, None)


def test_a_class_in_the_list_is_made_with_its_options(site, monkeypatch):
    class Settings(BaseModel):
        path: str = Field(default="here", alias="folder")

    class Mine:
        name = "mine"
        Config = Settings

        def __init__(self, config):
            self.config = config

        @hookimpl
        def on_delta(self): ...

    monkeypatch.setenv("ROPEWALK_MINE_FOLDER", "there")

    assert assemble([Mine], {}, None).plugins[0].config.path == "there"
