"""What `dev.py` decides: whether a demonstration went well, and what the lists of packages should be."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(dev, monkeypatch, tmp_path):
    """A repository whose class History is in a file of three lines."""
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "history.py").write_text("class History:\n    pass\n# end\n")
    (tmp_path / "core" / "other.py").write_text("class HistoryView:\n    pass\n")
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    return tmp_path


def events(answer, *tools):
    used = [{"name": name, "status": "success"} for name in tools]
    message = {"role": "assistant", "content": [{"text": answer}]}
    return [{"start": True}, {"result": {"message": message, "tools": used}}]


def test_a_demonstration_with_the_right_number_and_both_tools_is_fine(dev, checkout):
    assert dev.demo_problems(events("core/history.py has 3 lines.", "find_text", "count_lines")) == []


@pytest.mark.parametrize("answer", ["It has 33 lines.", "It has 13 lines.", "I do not know.", ""])
def test_a_demonstration_with_another_number_is_not(dev, checkout, answer):
    (problem,) = dev.demo_problems(events(answer, "find_text", "count_lines"))
    assert "should name 3 lines" in problem


def test_a_demonstration_that_skipped_a_tool_is_not(dev, checkout):
    assert dev.demo_problems(events("3", "count_lines")) == ["the tool find_text gave no result"]


def test_a_demonstration_whose_tool_failed_is_not(dev, checkout):
    answer = events("3", "find_text", "count_lines")
    answer[-1]["result"]["tools"][1]["status"] = "error"
    assert dev.demo_problems(answer) == ["the tool count_lines gave no result"]


def test_a_demonstration_without_a_result_is_not(dev, checkout):
    assert len(dev.demo_problems([])) == 3


def test_a_demonstration_whose_question_has_no_single_answer_says_so(dev, checkout):
    (checkout / "core" / "again.py").write_text("class History:\n    pass\n")
    assert dev.demo_problems(events("3")) == ["class History is defined in 2 files under core/"]


def test_a_new_plugin_gets_an_extra_and_bundled_ones_stay_bundled(dev):
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(dev.with_packages(text, ["core", "plugins/cli", "plugins/new-thing"]))
    assert project["project"]["dependencies"] == ["ropewalk-core==0.1.0", "ropewalk-cli==0.1.0"]
    wanted = ["ropewalk-new-thing==0.1.0"]
    assert project["project"]["optional-dependencies"] == {"new-thing": wanted, "all": wanted}
    assert project["tool"]["importlinter"]["root_packages"] == ["ropewalk", "ropewalk_cli", "ropewalk_new_thing"]
    assert set(project["tool"]["uv"]["sources"]) == {"ropewalk-core", "ropewalk-cli", "ropewalk-new-thing"}


def test_a_bridge_of_contrib_gets_no_extra(dev):
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(dev.with_packages(text, ["core", "plugins/cli", "contrib/bridge"]))
    assert project["project"]["optional-dependencies"] == {"all": []}
    assert "ropewalk_bridge" in project["tool"]["importlinter"]["root_packages"]


def test_the_fingerprint_changes_with_a_project_file(dev, checkout):
    (checkout / "requirements-dev.txt").write_text("")
    (checkout / "plugins").mkdir()
    before = dev.fingerprint()
    (checkout / "core" / "pyproject.toml").write_text("")
    assert dev.fingerprint() != before


def test_an_unknown_argument_of_the_demonstration_is_refused(dev, capsys):
    with pytest.raises(SystemExit):
        dev.main(["demo", "--chekc"])

    assert "--chekc" in capsys.readouterr().err
