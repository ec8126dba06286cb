"""From a model string to a model."""

from __future__ import annotations

import pytest

from ropewalk import Agent
from ropewalk.errors import MissingPluginError, UnknownModelError

PROVIDER = """
from ropewalk.markers import hookimpl


class Model:
    context_window = None

    def __init__(self, spec):
        self.spec = spec

    def stream(self, request): ...


class Plugin:
    name = "{name}"

    @hookimpl
    def provide_model(self, spec):
        return Model(spec) if {takes} else None
"""


def provider(site, name, prefix=None, takes="True"):
    owned = [f"model.{prefix or name}"]
    site.plugin(name, on_demand=True, parameters=owned, source=PROVIDER.format(name=name, takes=takes))


def model_of(spec, **given):
    return Agent(model=spec, **given).model


@pytest.mark.parametrize(("spec", "asked"), [("clouds:x", "clouds:x"), ("clouds", "clouds:"), ("clouds:", "clouds:")])
def test_the_owner_of_the_prefix_makes_the_model(site, spec, asked):
    provider(site, "clouds")

    assert model_of(spec).spec == asked


def test_every_owner_of_a_prefix_is_asked(site):
    provider(site, "a-clouds", "clouds", takes="False")
    provider(site, "b-clouds", "clouds")

    assert type(model_of("clouds:x")).__module__ == "fake_b_clouds"


def test_an_owner_that_is_switched_off_is_not_asked_and_another_one_is(site):
    provider(site, "a-clouds", "clouds")
    provider(site, "b-clouds", "clouds")

    assert type(model_of("clouds:x", plugins=["-a-clouds"])).__module__ == "fake_b_clouds"
    with pytest.raises(MissingPluginError, match=r"'.-clouds' is switched off by plugins="):
        model_of("clouds:x", plugins=["-a-clouds", "-b-clouds"])


def test_a_prefix_that_no_plugin_has_is_no_matter_of_the_default_provider(site):
    """Whoever writes `openai:gpt-4o` wants OpenAI: that a plugin for Bedrock is missing is not what is wrong."""
    provider(site, "clouds")

    with pytest.raises(UnknownModelError) as caught:
        model_of("openai:gpt-4o")

    assert str(caught.value) == (
        "model='openai:gpt-4o': no plugin provides the prefix 'openai': installed are clouds; ropewalk-litellm brings "
        "other providers: pip install ropewalk-litellm and write 'litellm:openai/gpt-4o'"
    )


@pytest.mark.parametrize("takes", ["False", "spec is None"])
@pytest.mark.parametrize("spec", ["openai:gpt-4o", "openai/gpt-4o"])
def test_with_the_plugins_there_only_the_text_is_to_be_changed(site, spec, takes):
    provider(site, "bedrock", takes=takes)
    provider(site, "litellm")

    with pytest.raises(UnknownModelError) as caught:
        model_of(spec)

    assert str(caught.value) == (
        f"model={spec!r}: no plugin provides the prefix 'openai': installed are bedrock, litellm; ropewalk-litellm "
        "brings other providers: write 'litellm:openai/gpt-4o'"
    )


def test_a_model_of_the_environment_is_named_so(site, monkeypatch):
    monkeypatch.setenv("ROPEWALK_MODEL", "openai:x")
    with pytest.raises(UnknownModelError, match=r"^ROPEWALK_MODEL='openai:x': no plugin provides the prefix 'openai'"):
        model_of(None)

    monkeypatch.setenv("ROPEWALK_MODEL", "local:x")
    with pytest.raises(MissingPluginError, match=r"^ROPEWALK_MODEL='local:x' needs the plugin ropewalk-local"):
        model_of(None)


def test_a_prefix_that_is_nearly_one_is_suggested(site):
    provider(site, "clouds")

    with pytest.raises(UnknownModelError, match=r"prefix 'cluods': did you mean 'clouds'\? installed are clouds;"):
        model_of("cluods:x")

    with pytest.raises(UnknownModelError, match=r"prefix 'locl': did you mean 'local'\?"):
        model_of("locl:")


@pytest.mark.parametrize("spec", [None, "amazon.nova-lite-v1:0", "gpt-oss", "arn:aws:bedrock:us-east-1::model/x"])
def test_without_the_default_provider_it_is_said_what_to_install_or_to_write(site, spec):
    provider(site, "clouds")

    with pytest.raises(
        MissingPluginError, match=r"pip install ropewalk-bedrock, or name another .*are clouds; "
    ) as caught:
        model_of(spec)

    assert "litellm:openai/gpt-4o" in str(caught.value)


def test_a_known_prefix_whose_plugin_is_missing_says_what_to_install(site):
    with pytest.raises(MissingPluginError, match=r"^model='local:x' needs .*: pip install ropewalk-local$"):
        model_of("local:x")


def test_a_provider_that_does_not_know_the_model_is_named(site):
    provider(site, "clouds", takes="False")

    with pytest.raises(UnknownModelError, match=r"the provider 'clouds' does not know this model: .*installed are cl"):
        model_of("clouds:x")
