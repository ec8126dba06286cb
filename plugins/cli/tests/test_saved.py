"""The file of a paused run."""

from __future__ import annotations

import json
import stat

import pytest

from ropewalk_cli.saved import AgentOptions, SavedRun, SavedRunError, check_place, read, write

OPTIONS = AgentOptions("testing:echo", None, ("tools.py",), ("-console",), "Be brief.", ("delete",), checkpointing=True)
SAVED = SavedRun(OPTIONS, {"data": {"messages": []}}, {"interrupts": [{"id": "i", "name": "n", "reason": None}]})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.json"


def test_what_is_written_is_read(file):
    write(file, SAVED)

    assert read(file) == SAVED
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["run.json"]


def test_a_file_that_cannot_be_written_is_told_of_and_the_old_one_stays(file, monkeypatch):
    write(file, SAVED)
    before = file.read_bytes()

    def fail(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(SavedRunError, match="cannot be written: No space left"):
        write(file, SavedRun(OPTIONS, {}, None))

    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == ["run.json"]


def test_options_can_be_used_from_another_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    options = AgentOptions(agent="mine.py:agent", tools=("tools.py", "package.module:tool", "toolbox")).portable()

    assert options.agent == f"{file.parent}/mine.py:agent"
    assert options.tools == (f"{file.parent}/tools.py", "package.module:tool", "toolbox")
    assert AgentOptions(agent="module:agent").portable().agent == "module:agent"


def changed(**changes):
    return lambda plain: {**plain, **changes}


def options(**changes):
    return lambda plain: {**plain, "agent": {**plain["agent"], **changes}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda plain: [plain], "it is something else"),
        (lambda plain: {"name": "a package"}, "it is something else"),
        (lambda plain: None, "it is something else"),
        (changed(version=2), "its version is 2, and this is 1"),
        (changed(more=1), "its keys are agent, more, resume, snapshot, version"),
        (changed(resume="now"), '"resume" is no payload'),
        (changed(resume={"interrupts": [{"id": 1, "name": "n"}]}), '"resume" is no payload'),
        (changed(resume={"interrupts": "all"}), '"resume" is no payload'),
        (changed(resume={"checkpointResume": {}, "interrupts": []}), '"resume" is no payload'),
        (changed(snapshot=[]), '"snapshot" is no snapshot'),
        (changed(agent={}), '"agent" does not say'),
        (options(tools="tools.py"), '"agent" does not say'),
        (options(tools=[1]), '"agent" does not say'),
        (options(model=1), '"agent" does not say'),
        (options(checkpointing=1), '"agent" does not say'),
    ],
)
def test_what_is_no_paused_run_is_one_clear_error(file, change, problem):
    write(file, SAVED)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(SavedRunError, match="holds no paused run: ") as caught:
        read(file)

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 1, 50, -1])
def test_a_torn_file_is_one_clear_error(file, length):
    write(file, SAVED)
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(SavedRunError, match="is no JSON, or is torn"):
        read(file)


def test_what_is_no_text_is_one_clear_error(file):
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SavedRunError, match="is no JSON, or is torn"):
        read(file)


def test_no_file_is_one_clear_error(file):
    with pytest.raises(SavedRunError, match="there is no file"):
        read(file)


def test_a_file_that_exists_is_not_written_over(file):
    file.write_text("mine")
    with pytest.raises(SavedRunError, match="exists: `ropewalk resume"):
        check_place(file)

    file.write_text("")
    check_place(file)
    with pytest.raises(SavedRunError, match="there is no folder"):
        check_place(file.parent / "none" / "run.json")
