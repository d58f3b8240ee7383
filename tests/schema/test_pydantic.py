"""Hints that pydantic handles: models, validators, its own types, ``Field`` defaults."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic
import pydantic.dataclasses
import pytest
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from raxol_sync.errors import InvalidTool
from raxol_sync.schema import ArgumentError, ResultError, function_schema, to_json
from tests.schema.helpers import bound, part, refusal, returning, schema_of

T = TypeVar("T")


class Address(BaseModel):
    city: str
    zip_code: str = Field(alias="zipCode", pattern="^[0-9]+$")


class Person(BaseModel):
    """A person."""

    name: str
    home: Address
    work: Address | None = None


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Page(BaseModel, Generic[T]):
    items: list[T]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


class Zoo(BaseModel):
    animal: Cat | Dog = Field(discriminator="kind")


class Even(BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


@pydantic.dataclasses.dataclass
class Point:
    x: int = Field(ge=0)


def no_spaces(value: str) -> str:
    return value.replace(" ", "")


def only_even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


HOME = {"city": "Rome", "zipCode": "1"}


def test_model_is_inlined_and_made() -> None:
    """The schema refers to nothing, aliases are used, and a model instance is made."""
    schema = part(Person)
    assert "$ref" not in str(schema)
    assert schema["properties"]["home"]["required"] == ["city", "zipCode"]
    assert schema["description"] == "A person."
    made = bound(Person, {"name": "A", "home": HOME})
    assert made == Person(name="A", home=Address(**HOME))
    assert bound(Person, '{"name": "A", "home": {"city": "Rome", "zipCode": "1"}}') == made
    assert bound(list[Address], [HOME]) == [Address(**HOME)]


def test_violations_of_a_model_hold_no_value() -> None:
    """Path and kind come from pydantic; what its messages quote is left out."""
    with pytest.raises(ArgumentError) as caught:
        bound(Person, {"name": 5, "home": {"zipCode": "secret"}})
    found = {v.path: v.keyword for v in caught.value.violations}
    assert found == {
        "x.name": "string_type",
        "x.home.city": "missing",
        "x.home.zipCode": "string_pattern_mismatch",
    }
    assert "secret" not in str(caught.value)
    assert "73" not in str(refusal(Even, {"n": 73}))
    assert "secret" not in str(refusal(Zoo, {"animal": {"kind": "secret"}}))


def test_recursive_model_is_a_definition() -> None:
    """A model that holds itself is the only thing that is referred to."""
    schema = schema_of(Tree).input_schema
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert bound(Tree, {"value": 1, "children": [{"value": 2}]}) == Tree(
        value=1, children=[Tree(value=2)]
    )

    def takes(a: Tree, b: Tree) -> None: ...

    assert function_schema(takes).bind({"a": {"value": 1}, "b": {"value": 2}})["b"] == Tree(value=2)


def test_deep_values_are_refused() -> None:
    """A value nested without end is a violation."""
    value: dict[str, Any] = {"value": 1}
    for _ in range(3_000):
        value = {"value": 1, "children": [value]}
    with pytest.raises(ArgumentError):
        bound(Tree, value)


def test_generic_model_discriminator_and_dataclass() -> None:
    """Other things that pydantic describes work as it describes them."""
    assert bound(Page[int], {"items": ["1"]}) == Page[int](items=[1])
    assert bound(Zoo, {"animal": {"kind": "cat", "lives": 9}}) == Zoo(
        animal=Cat(kind="cat", lives=9)
    )
    assert "$ref" not in str(part(Zoo))
    assert "#/$defs" not in str(part(Zoo))
    assert bound(Point, {"x": 1}) == Point(x=1)
    assert refusal(Point, {"x": -1}).keyword == "greater_than_equal"


def test_types_of_pydantic() -> None:
    """A type that only pydantic knows is described and made by it."""
    assert str(bound(pydantic.HttpUrl, "https://a.b/")) == "https://a.b/"
    assert refusal(pydantic.HttpUrl, "secret").keyword == "url_parsing"
    assert "secret" not in str(refusal(pydantic.HttpUrl, "secret"))


def test_validators_are_never_skipped() -> None:
    """Metadata with behaviour makes pydantic handle the whole hint."""
    assert bound(Annotated[str, AfterValidator(no_spaces)], "a b") == "ab"
    assert bound(Annotated[str, Field(min_length=1), AfterValidator(no_spaces)], "a b") == "ab"
    assert bound(Annotated[str, StringConstraints(to_upper=True)], "a") == "A"
    assert bound(list[Annotated[str, AfterValidator(no_spaces)]], ["a b"]) == ["ab"]


def test_field_as_default() -> None:
    """``= Field(...)`` says description, bounds and default, and ``bind`` fills the default."""

    def takes(
        a: int = Field(description="The a", ge=1),
        b: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008 - how pydantic is used
        c: str | None = Field(default=None),
    ) -> None: ...

    schema = function_schema(takes)
    assert schema.input_schema["required"] == ["a"]
    assert schema.input_schema["properties"]["a"] == {
        "type": "integer", "minimum": 1, "description": "The a",
    }  # fmt: skip
    first, second = schema.bind({"a": 1}), schema.bind({"a": 1})
    assert first == {"a": 1, "b": [1], "c": None}
    assert first["b"] is not second["b"]


def test_results() -> None:
    """A model is an object by its aliases; its schema is that of what is sent."""
    schema = returning(Address)
    assert schema.output_schema is not None
    assert not schema.wraps_result
    assert schema.output_schema["required"] == ["city", "zipCode"]
    assert schema.dump(Address(**HOME)) == HOME
    assert schema.dump(HOME) == HOME
    assert returning(list[Address]).dump([Address(**HOME)]) == [HOME]
    with pytest.raises(ResultError, match="'zipCode' is missing"):
        schema.dump({"city": "Rome"})
    with pytest.raises(ResultError, match="type"):
        schema.dump("Rome")
    assert to_json({"a": Person(name="A", home=Address(**HOME))}) == {
        "a": {"name": "A", "home": HOME, "work": None}
    }


def test_a_model_that_pydantic_cannot_describe() -> None:
    """It is refused in words when the function is registered."""

    class Odd(BaseModel, arbitrary_types_allowed=True):
        thing: object
        call: Any = Field(default=None)
        other: complex

    Odd.model_fields  # noqa: B018

    class Strange(BaseModel, arbitrary_types_allowed=True):
        thing: memoryview

    with pytest.raises(InvalidTool, match="pydantic cannot describe"):
        schema_of(Strange)
    assert returning(Strange).output_schema is None


class Form(BaseModel):
    model_config = {"extra": "forbid"}
    name: str = Field(min_length=2)
    age: int = Field(default=1, ge=0)
    share: float = 1.0
    kind: Literal["a", "b"] = "a"
    day: dt.date | None = None
    tags: list[str] = []
    home: Address | None = None
    even: Annotated[int, AfterValidator(only_even)] = 2


SECRET = "s3cr3t"
DATE = "an ISO 8601 date such as 2026-07-28"
# What is given as `x: Form`, and the whole text without its beginning.
TEXTS: list[tuple[Any, str]] = [
    (..., "'x' is missing: give an object (Form)"),
    (SECRET, "'x' must be an object, not a string"),
    ([], "'x' must be an object, not an array"),
    ({}, "'x.name' is missing: give a string"),
    ({"name": None}, "'x.name' must be a string, not null"),
    ({"name": "a"}, "'x.name' must have at least 2 characters"),
    ({"name": "ab", "age": SECRET}, "'x.age' must be an integer, not a string"),
    ({"name": "ab", "age": 1.5}, "'x.age' must be an integer, not a number with a fraction"),
    ({"name": "ab", "age": -1}, "'x.age' must be greater than or equal to 0"),
    ({"name": "ab", "share": {}}, "'x.share' must be a number, not an object"),
    ({"name": "ab", "kind": SECRET}, "'x.kind' must be 'a' or 'b'"),
    ({"name": "ab", "day": SECRET}, f"'x.day' must be {DATE}"),
    ({"name": "ab", "day": []}, f"'x.day' must be {DATE}, not an array"),
    ({"name": "ab", "tags": 1}, "'x.tags' must be an array, not an integer"),
    ({"name": "ab", "tags": ["a", 1]}, "'x.tags[1]' must be a string, not an integer"),
    ({"name": "ab", "home": {"city": "Rome"}}, "'x.home.zipCode' is missing: give a value"),
    ({"name": "ab", "even": 73},
     "'x.even' must be a value that the model accepts (pydantic: value_error)"),
    ({"name": "ab", "z": SECRET},
     "'x.z' is not a known name: leave it out, or use one of: name, age, share, kind, day, tags, "
     "home, even"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_what_is_said_of_values_that_do_not_fit_a_model(value: Any, text: str) -> None:
    """The words that other hints have; never the value."""

    def takes(x: Form) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        function_schema(takes).bind({} if value is ... else {"x": value})
    assert str(caught.value) == f"invalid arguments: {text}"
    assert SECRET not in str(caught.value)


def test_a_type_of_pydantic_that_is_missing_is_told_by_its_schema() -> None:
    """Not by the name of a class, which means nothing to a caller."""
    for hint, words in ((pydantic.HttpUrl, "a string"), (Annotated[int, AfterValidator(only_even)],
                        "an integer")):  # fmt: skip

        def takes(x: Any) -> None: ...

        takes.__annotations__["x"] = hint
        with pytest.raises(ArgumentError, match=f"'x' is missing: give {words}$"):
            function_schema(takes).bind({})
