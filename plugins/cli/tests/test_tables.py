from __future__ import annotations

from ropewalk_cli.tables import table


def test_columns_are_as_wide_as_what_stands_in_them():
    assert table(("A", "LONG"), [("abc", "x"), ("", "longer")]) == ["A    LONG", "abc  x", "     longer"]


def test_a_head_may_stand_alone():
    assert table(("A", "B"), []) == ["A  B"]
