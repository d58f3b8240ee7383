"""RFC 6570 level 1: `{name}` stands for one percent-encoded value."""

from __future__ import annotations

import re
import time
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_sync.protocol.templates import TemplateError, UriTemplate, is_template

VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(VALUES, VALUES)
def test_what_is_expanded_is_matched(one: str, other: str) -> None:
    """Any values round-trip, between separators."""
    template = UriTemplate("db://{one}/rows/{other}?x#end")
    values = {"one": one, "other": other}
    uri = template.expand(values)
    assert uri.isascii()
    assert template.match(uri) == values


@given(
    st.lists(st.sampled_from(["a", "-", "/", "aa", ".", "{}"]), max_size=7),
    st.text("aab-./", max_size=10),
)
@example(["{}", "-", "{}", "a", "{}"], "-a-a-a-")
@example(["{}", "{}"], "aaa")
@example(["{}", "a", "{}"], "aa")
@example(["aa", "{}", "aa"], "aaa")
def test_matching_agrees_with_a_regular_expression(parts: list[str], uri: str) -> None:
    """The first variable is as long as it can be, then the second, and so on."""
    text, pattern = "", ""
    names: list[str] = []
    for part in parts:
        if part == "{}":
            names.append(f"v{len(names)}")
            text, pattern = text + f"{{{names[-1]}}}", pattern + "([^/?#]+)"
        else:
            text, pattern = text + part, pattern + re.escape(part)
    found = re.fullmatch(pattern, uri)
    expected = dict(zip(names, map(unquote, found.groups()), strict=True)) if found else None
    assert UriTemplate(text).match(uri) == expected


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("x://{a}{b}{c}{d}{e}/end", "x://" + "a" * 200_000),
        ("x://{a}-{b}-{c}-{d}/end", "x://" + "-" * 200_000 + "/end/"),
        ("f:{name}.{ext}", "f:" + "." * 200_000 + "/"),
    ],
)
def test_no_uri_takes_long(template: str, uri: str) -> None:
    """The time is in proportion to the length; a regular expression's would be its power."""
    started = time.monotonic()
    assert UriTemplate(template).match(uri) is None
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("note://{id}", "note://7", {"id": "7"}),
        ("note://{id}", "note://", None),
        ("note://{id}", "note://a/b", None),
        ("note://{id}", "note://a?b", None),
        ("note://{id}", "note://a#b", None),
        ("note://{id}", "Note://a", None),
        ("note://{id}", "xnote://a", None),
        ("note://{id}", "note://a%2Fb%3f", {"id": "a/b?"}),
        ("note://{id}", "note://..%2f..%2Fetc", {"id": "../../etc"}),
        ("note://{id}", "note://a+b", {"id": "a+b"}),
        ("note://{id}", "note://%C3%A4", {"id": "ä"}),
        ("note://{id}", "note://%FF", {"id": "\ufffd"}),
        ("note://{id}", "note://%ED%A0%80", {"id": "\ufffd" * 3}),
        ("note://{id}/x", "note://7/x", {"id": "7"}),
        ("note://{id}/x", "note:///x", None),
        ("{a}.{b}", "x.tar.gz", {"a": "x.tar", "b": "gz"}),
        ("a.b://{c}", "axb://c", None),
        ("{a}", "", None),
        ("plain", "plain", {}),
        ("plain", "plain/", None),
        ("", "", {}),
        ("ab{x}bc", "abc", None),
    ],
)
def test_matching(template: str, uri: str, values: dict[str, str] | None) -> None:
    """No value is empty or holds a separator that was not encoded; literals are compared as is."""
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    "text",
    ["{", "}", "{a", "a}", "{{a}}", "{a}}", "{{a}", "{}", "{ a}", "{a b}", "{a,b}", "{+a}", "{#a}",
     "{.a}", "{/a}", "{;a}", "{?a}", "{&a}", "{a*}", "{a:3}", "{a.}", "{a..b}", "{ä}", "{a-b}",
     "{%4}", "{a\n}", "x{a}/{a}"],
)  # fmt: skip
def test_what_is_no_level_1_template_is_refused(text: str) -> None:
    """Operators and modifiers of higher levels, broken braces, and a name given twice."""
    with pytest.raises(TemplateError):
        UriTemplate(text)


@pytest.mark.parametrize("name", ["a", "A_1", "_", "1", "a.b", "a.1.c", "%20", "a%C3"])
def test_names_are_those_of_the_rfc(name: str) -> None:
    """Letters, digits, underscores, dots between them, percent-encoded characters."""
    template = UriTemplate(f"x:{{{name}}}")
    assert template.variables == (name,)
    assert template.match("x:5") == {name: "5"}


def test_expanding() -> None:
    """Reserved characters are encoded, an absent value is empty."""
    template = UriTemplate("x:{a}/{b}")
    assert template.expand({"a": "/?#%é ~-._"}) == "x:%2F%3F%23%25%C3%A9%20~-._/"
    assert template.variables == ("a", "b")
    assert template.text == "x:{a}/{b}"


def test_templates_are_told_from_uris() -> None:
    """By any brace."""
    assert is_template("x:{a}")
    assert is_template("x:a}")
    assert not is_template("x:a")
