"""Google, NumPy and Sphinx docstrings."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.schema import function_schema
from raxol_sync.schema.docstrings import parse_docstring

GOOGLE = """Find flights.

    Looks at every airline.

    Args:
        origin (str, optional): Where from:
            an airport code.
        dest: Where to.
        *rest: The rest.
          **more (dict[str, int]):  More.

    Returns:
        list: The flights.

            Cheapest first.

    Raises:
        ValueError: If there is none.

    Example:
        dest: not a parameter
    """

NUMPY = """Find flights.

    Looks at every airline.

    Parameters
    ----------
    origin : str, optional
        Where from:
        an airport code.
    dest
        Where to.

    a, b : int
        Two of them.

    Returns
    -------
    list
        The flights.

    Notes
    -----
    Slow.
    """

SPHINX = """Find flights.

    Looks at every airline.

    :param str origin: Where from:
        an airport code.
    :param dest: Where to.
    :type dest: str
    :returns: The flights.
        Cheapest first.
    :rtype: list
    :raises ValueError: if there is none
    """


def test_google() -> None:
    """Args are read, Returns dropped, everything else kept."""
    parsed = parse_docstring(GOOGLE)
    assert parsed.parameters == {
        "origin": "Where from: an airport code.",
        "dest": "Where to.",
        "rest": "The rest. **more (dict[str, int]):  More.",
    }
    assert parsed.description.startswith("Find flights.\n\nLooks at every airline.\n\nRaises:")
    assert "Cheapest" not in parsed.description
    assert "not a parameter" in parsed.description


def test_numpy() -> None:
    """Parameters are read, several names at once too; Returns is dropped, Notes kept."""
    parsed = parse_docstring(NUMPY)
    assert parsed.parameters == {
        "origin": "Where from: an airport code.",
        "dest": "Where to.",
        "a": "Two of them.",
        "b": "Two of them.",
    }
    assert parsed.description.endswith("Looks at every airline.\n\nNotes\n-----\nSlow.")


def test_sphinx() -> None:
    """``:param:`` fields are read, types and returns dropped, raises kept."""
    parsed = parse_docstring(SPHINX)
    assert parsed.parameters == {
        "origin": "Where from: an airport code.",
        "dest": "Where to.",
    }
    assert parsed.description == (
        "Find flights.\n\nLooks at every airline.\n\n:raises ValueError: if there is none"
    )


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        ("", "", {}),
        ("One line.", "One line.", {}),
        ("Args:\n    a: The a.\nReturns:\n    It.", "", {"a": "The a."}),
        ("Text.\nArgs:\na: Not indented.", "Text.\na: Not indented.", {}),
        ("Text.\n\nArgs:\n  a:\n    Below it.\n\n\n    More.", "Text.", {"a": "Below it. More."}),
        ("Text.\n\nArgs:", "Text.", {}),
        ("Note: this is not a section.", "Note: this is not a section.", {}),
        ("Text.\n\n    Odd indent.\n\nArgs:\n    a: A.\nAfter.",
         "Text.\n\n    Odd indent.\n\nAfter.",
         {"a": "A."}),
        ("Text.\n\nParameters\n----------\na : int\n    A.\n\nAfter it all.",
         "Text.\n\nAfter it all.",
         {"a": "A."}),
        ("Args\n----", "", {}),
    ],
)  # fmt: skip
def test_forms(text: str, description: str, parameters: dict[str, str]) -> None:
    """Odd and small docstrings are read without surprises."""
    parsed = parse_docstring(text)
    assert (parsed.description, parsed.parameters) == (description, parameters)


@given(st.text(alphabet=st.sampled_from("Args:\n -Returnsparm \t:x(*)"), max_size=200))
def test_any_text_is_read(text: str) -> None:
    """Nothing in a docstring is an error."""
    parse_docstring(text)


def test_annotated_text_wins() -> None:
    """The text beside the hint wins over the docstring; the docstring over a class's own."""
    from dataclasses import dataclass

    @dataclass
    class Place:
        """Of the class."""

        n: int

    def takes(
        a: Annotated[int, "beside"], b: Place, c: Annotated[Place, "beside"], d: Place
    ) -> Any:
        """Take.

        Args:
            a: docstring
            b: docstring
            c: docstring
        """

    properties = function_schema(takes).input_schema["properties"]
    assert {name: part["description"] for name, part in properties.items()} == {
        "a": "beside", "b": "docstring", "c": "beside", "d": "Of the class.",
    }  # fmt: skip
