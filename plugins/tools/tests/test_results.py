from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import uuid
from typing import Any

import pydantic
import pytest

from ropewalk_tools import tool


class Point(pydantic.BaseModel):
    x: float
    day: dt.date = dt.date(2024, 2, 29)


class Points(pydantic.RootModel[list[int]]):
    pass


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Pair:
    a: int
    b: bytes


CYCLE: list[Any] = [1]
CYCLE.append(CYCLE)


def returning(value: Any) -> Any:
    @tool
    async def give() -> Any:
        return value

    return give


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (3, "3"),
        (True, "true"),
        (1.5, "1.5"),
        (math.nan, "null"),
        (math.inf, "null"),
        (2**70, "1180591620717411303424"),
        ({"a": 1, "b": [None]}, '{"a": 1, "b": [null]}'),
        ([1, "ä"], '[1, "ä"]'),
        ((1, 2), "[1, 2]"),
        ({"v": math.nan, "w": math.inf}, '{"v": null, "w": null}'),
        (
            {"price": decimal.Decimal("1.10"), "day": dt.date(2024, 2, 29), "id": uuid.UUID(int=1)},
            '{"price": "1.10", "day": "2024-02-29", "id": "00000000-0000-0000-0000-000000000001"}',
        ),
        (dt.date(2024, 2, 29), "2024-02-29"),
        ({"blob": b"\x00\xff"}, '{"blob": "AP8="}'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (Color.RED, "red"),
        (Pair(1, b"\x00"), '{"a": 1, "b": "AA=="}'),
        ({1: "one"}, '{"1": "one"}'),
        (CYCLE, '[1, "<cycle>"]'),
        (Points([1, 2]), "[1, 2]"),
        ("bad \ud83d end", "bad � end"),
        ({"status": "shipped", "content": ["box"]}, '{"status": "shipped", "content": ["box"]}'),
        ({"status": "success", "content": "none"}, '{"status": "success", "content": "none"}'),
        ({"status": ["a"], "content": []}, '{"status": ["a"], "content": []}'),
    ],
)
async def test_a_returned_value_becomes_text(value, text, said):
    assert await said(returning(value)) == text


async def test_a_pydantic_model_becomes_a_json_block(invoke):
    result = await invoke(returning(Point(x=math.nan)))

    assert result == {
        "toolUseId": "T1",
        "status": "success",
        "content": [{"json": {"x": None, "day": "2024-02-29"}}],
    }


@pytest.mark.parametrize("status", ["success", "error"])
async def test_a_tool_result_is_taken_as_one(status, invoke):
    image = {"format": "png", "source": {"bytes": b"\x89PNG"}}
    content = [{"text": "bad \ud83d"}, {"json": {"v": math.nan, 1: b"\x00"}}, {"image": image}]

    assert await invoke(returning({"toolUseId": "other", "status": status, "content": content, "more": 1})) == {
        "toolUseId": "T1",
        "status": status,
        "content": [{"text": "bad �"}, {"json": {"v": None, "1": "AA=="}}, {"image": image}],
    }


async def test_a_result_object_that_is_returned_twice_is_never_written_to(invoke):
    image = {"format": "png", "source": {"bytes": b"x"}}
    content = [{"text": "a"}, {"json": {"day": dt.date(2024, 2, 29)}}, {"image": image}]
    shared: dict[str, Any] = {"status": "success", "content": content}
    before = json.dumps(shared, default=str)
    give = returning(shared)

    first, second = await invoke(give, "T1"), await invoke(give, "T2")

    assert (first["toolUseId"], second["toolUseId"]) == ("T1", "T2")
    assert json.dumps(shared, default=str) == before
    assert first["content"] is not second["content"]
    assert first["content"][0] is not shared["content"][0]
    assert first["content"][2]["image"] is not image


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (["text"], r"content[0] is no content block"),
        ([{"text": "a"}, {}], r"content[1] is no content block"),
        ([{"text": "a", "json": 1}], "exactly one of the keys text, json, image, document, video"),
        ([{"toolUse": {}}], r"content[0] is no content block"),
        ([{"text": 3}], r"content[0] has a int as 'text': give it a str"),
        ([{"image": b"x"}], r"content[0] has a bytes as 'image': give it a dict"),
    ],
)
async def test_a_malformed_tool_result_is_an_error_result_that_says_where(content, problem, failed):
    assert problem in await failed(returning({"status": "success", "content": content}))


@pytest.mark.parametrize("sign", [1, -1])
async def test_an_integer_that_python_refuses_to_print_is_a_result_all_the_same(sign, said):
    number = sign * (1 << 20_000)

    assert await said(returning(number)) == hex(number)
    assert await said(returning(sign * 10**400)) == str(sign * 10**400)


async def test_an_error_whose_text_cannot_be_read_is_an_error_result(failed):
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @tool
    async def fails() -> None:
        raise MuteError

    assert (await failed(fails)).startswith("Error: MuteError - ")


async def test_half_an_emoji_in_an_error_is_replaced(failed):
    @tool
    async def fails() -> None:
        raise ValueError("bad \ud83d")

    assert await failed(fails) == "Error: bad �"
