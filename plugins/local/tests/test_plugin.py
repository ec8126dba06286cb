from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from ropewalk.model import Model
from ropewalk_local import LocalModel, LocalPlugin, catalog
from ropewalk_local.commands import models
from ropewalk_local.errors import UnknownLocalModelError


@pytest.mark.parametrize(
    ("spec", "model_id"),
    [
        ("local", "qwen2.5-coder-1.5b"),
        ("local:", "qwen2.5-coder-1.5b"),
        ("local:smollm2-135m", "smollm2-135m"),
        ("local:weights/a.gguf", "weights/a.gguf"),
        ("local:C:\\weights\\a.gguf", "C:\\weights\\a.gguf"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths are shown with other separators")
def test_a_local_string_becomes_a_model(spec, model_id):
    model = LocalPlugin().provide_model(spec)

    assert isinstance(model, LocalModel)
    assert isinstance(model, Model)
    assert model.model_id == model_id


@pytest.mark.parametrize("spec", [None, "", "localhost:1", "bedrock:x", "LOCAL:x"])
def test_other_strings_are_left_to_others(spec):
    assert LocalPlugin().provide_model(spec) is None


def test_an_unknown_model_is_refused_at_once():
    with pytest.raises(UnknownLocalModelError, match="Did you mean"):
        LocalPlugin().provide_model("local:qwen2.5-coder-1.5")


def test_options_are_settings_of_the_models():
    plugin = LocalPlugin(LocalPlugin.Config(n_ctx=1000))

    assert plugin.provide_model("local").context_window == 1024


def test_an_unknown_option_is_refused():
    with pytest.raises(ValidationError, match="n_cxt"):
        LocalPlugin.Config(n_cxt=5)


def test_the_options_are_those_of_the_model():
    import inspect

    parameters = inspect.signature(LocalModel).parameters
    fields = LocalPlugin.Config.model_fields

    assert {name: field.default for name, field in fields.items()} == {
        name: parameter.default for name, parameter in parameters.items() if name != "model_id"
    }


def test_importing_the_plugin_and_making_a_model_does_not_load_the_runtime():
    code = (
        "import sys; from ropewalk_local import LocalModel, LocalPlugin; LocalModel(); LocalPlugin(); "
        "print(sorted({'xllamacpp', 'click'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"


def test_the_models_command_is_provided():
    assert LocalPlugin().provide_commands() == [models]


def test_the_list_shows_what_is_fetched(index, cache, monkeypatch):
    monkeypatch.setattr(catalog, "CATALOG", (index.entry,))
    run = CliRunner()

    before = run.invoke(models, ["list"]).output
    fetched = run.invoke(models, ["fetch", "tiny"])
    after = run.invoke(models, ["list"]).output

    assert "tiny" in before
    assert "fetched" not in before
    assert fetched.output.strip().endswith("tiny.gguf")
    assert "fetched" in after
    assert str(cache) in after


def test_fetching_an_unknown_model_is_a_plain_error(cache):
    result = CliRunner().invoke(models, ["fetch", "zzzz"])

    assert result.exit_code == 1
    assert "knows no model 'zzzz'" in result.output
