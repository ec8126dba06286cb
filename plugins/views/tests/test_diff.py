"""`ropewalk diff`."""

from __future__ import annotations

import shutil


def test_what_is_the_same_is_not_told(ada):
    result = ada.run("diff", "ada", "ada")

    assert (result.stdout, result.exit_code) == ("", 0)


def test_differences_are_told_with_their_surroundings(ada):
    place = next(n for n, record in enumerate(ada.records("ada"), 1) if record.kind == "run_ended")
    ada.run("fork", f"ada@{place}", "eve")
    ada.talk("eve", "No problem.", prompt="Thanks!")
    result = ada.run("diff", "ada", "eve", "-U", "1")

    assert result.stdout.splitlines() == [
        "--- ada",
        "+++ eve",
        "@@ -5,3 +5,3 @@",
        " assistant: It is 3.",
        "-user: Thanks.",
        "-assistant: Bye.",
        "+user: Thanks!",
        "+assistant: No problem.",
    ]


def test_state_is_compared_too(kept):
    kept.talk("a", "Hi.", state={"n": 1})
    kept.talk("b", "Hi.", state={"n": 2})

    lines = kept.run("diff", "a", "b").stdout.splitlines()
    assert lines[-2:] == ["-state n = 1", "+state n = 2"]


def test_an_earlier_moment_is_compared_with_now(ada):
    lines = ada.run("diff", "ada@3", "ada").stdout.splitlines()

    assert lines[0] == "--- ada@3"
    assert "-broken off" in lines
    assert "+assistant: Bye." in lines


def test_the_other_session_may_be_in_another_store(ada, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ada.folder, other)
    ada.talk("ada", "More.")

    lines = ada.run("diff", "ada", "ada", "--other-store", str(other)).stdout.splitlines()
    assert "-assistant: More." in lines
