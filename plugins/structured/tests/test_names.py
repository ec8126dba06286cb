from __future__ import annotations

from typing import Annotated, Generic, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field, RootModel

from ropewalk.kits.messages.rules import is_legal_tool_name
from ropewalk_structured.names import tool_name_of

T = TypeVar("T")


class Cat(BaseModel):
    lives: int


class Dog(BaseModel):
    barks: bool


class Box(BaseModel, Generic[T]):
    content: T


class Pets(RootModel[list[Cat]]):
    pass


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Cat, "Cat"),
        (Box[int], "Box_int"),
        (Box[Cat | Dog], "Box_Union_Cat_Dog"),
        (Pets, "Pets"),
        (Cat | Dog, "Cat_or_Dog"),
        (Union[Cat, Dog], "Cat_or_Dog"),  # noqa: UP007 - the other spelling
        (Optional[Cat], "Cat_or_None"),  # noqa: UP045 - the other spelling
        (Annotated[Cat | Dog, Field(description="A pet.")], "Cat_or_Dog"),
        (list[Cat], "list_Cat"),
        (dict[str, Cat], "dict_str_Cat"),
        (type("Größe", (BaseModel,), {}), "Gr_e"),
        (type("名前", (BaseModel,), {}), "structured_output"),
        (type("L" * 70, (BaseModel,), {}), "L" * 64),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_name_is_the_class_s_made_legal(model, name):
    assert tool_name_of(model) == name
    assert is_legal_tool_name(name)
