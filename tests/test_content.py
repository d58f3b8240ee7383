"""Content objects: the same classes on both sides, bytes decoded, unknown ones kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.content import (
    CONTENT_TYPES,
    Audio,
    ContentError,
    Contents,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    UnknownContent,
    content_from_wire,
    contents_from_wire,
    message_from_wire,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MAYBE = st.none() | TEXTS
OBJECTS = st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS, max_size=3)
COMMON = {"annotations": st.none() | OBJECTS, "meta": st.none() | OBJECTS}
DATA = st.binary(max_size=40)
HALVES = st.fixed_dictionaries({"text": TEXTS}) | st.fixed_dictionaries({"data": DATA})
CONTENT = st.one_of(
    st.builds(Text, TEXTS, **COMMON),
    st.builds(Image, DATA, TEXTS, **COMMON),
    st.builds(Audio, DATA, TEXTS, **COMMON),
    st.builds(
        ResourceLink, TEXTS, TEXTS, title=MAYBE, description=MAYBE, mime_type=MAYBE,
        size=st.none() | st.integers(), **COMMON,
    ),
    st.builds(
        lambda uri, half, **more: EmbeddedResource(uri, **half, **more), TEXTS, HALVES,
        mime_type=MAYBE, **COMMON,
    ),
    st.builds(UnknownContent, OBJECTS.map(lambda o: {**o, "type": "hologram"})),
)  # fmt: skip
WIRE_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "uri", "text"]), inner)
    ),
    max_leaves=5,
)
NEAR_CONTENT = st.dictionaries(
    st.sampled_from(
        ["type", "text", "data", "mimeType", "uri", "name", "resource", "blob", "size", "_meta",
         "annotations", "role", "content", "title"]
    ),
    st.sampled_from(["text", "image", "audio", "resource", "resource_link", "user", "AA=="])
    | WIRE_VALUES,
)  # fmt: skip


def by_wire(item: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(item))
    return made


@given(CONTENT)
def test_content_round_trips(content: Any) -> None:
    """What one side writes the other reads as an equal object."""
    assert content_from_wire(by_wire(content.to_wire())) == content
    assert isinstance(content, CONTENT_TYPES)


@given(TEXTS, HALVES, MAYBE, st.none() | OBJECTS)
def test_contents_round_trip(
    uri: str, half: dict[str, Any], mime_type: str | None, meta: dict[str, Any] | None
) -> None:
    """What a resource holds."""
    contents = Contents(uri, **half, mime_type=mime_type, meta=meta)
    assert contents_from_wire(by_wire(contents.to_wire())) == contents


@given(CONTENT, st.sampled_from(["user", "assistant"]))
def test_messages_round_trip(content: Any, role: str) -> None:
    """Of a prompt."""
    message = Message(content, role)
    assert message_from_wire(by_wire(message.to_wire())) == message


@given(NEAR_CONTENT | WIRE_VALUES)
@pytest.mark.parametrize("read", [content_from_wire, contents_from_wire, message_from_wire])
def test_reading_raises_content_errors_only(read: Callable[[object], Any], value: object) -> None:
    """Whatever a peer sends; what is read can be written again."""
    try:
        content = read(value)
    except ContentError:
        return
    assert read(by_wire(content.to_wire())) == content


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (5, "not an object"),
        ({}, "no type"),
        ({"type": None}, "no type"),
        ({"type": []}, "no type"),
        ({"type": {}}, "no type"),
        ({"type": "text"}, "text must be a string"),
        ({"type": "text", "text": None}, "text must be a string"),
        ({"type": "image", "data": "AA=="}, "mimeType must be a string"),
        ({"type": "image", "data": 5, "mimeType": "m"}, "data must be a string"),
        ({"type": "resource_link", "uri": "u"}, "name must be a string"),
        ({"type": "resource"}, "no resource"),
        ({"type": "resource", "resource": {"uri": "u"}}, "blob must be a string"),
        ({"type": "resource", "resource": {"text": "t"}}, "uri must be a string"),
        ({"type": "resource", "resource": {"uri": "u", "text": 5}}, "text must be a string"),
    ],
)
def test_what_a_known_type_lacks_is_named(item: object, why: str) -> None:
    """Without its value."""
    with pytest.raises(ContentError, match=why):
        content_from_wire(item)


@pytest.mark.parametrize(
    "data", ["A", "AAA", "A===", "AA=", "@@@@", "AA==AA==", "A-_A", "ÄÄÄÄ", "A A="]
)
def test_what_is_no_base64_is_refused(data: str) -> None:
    """Not decoded to something else: a picture that lost bytes unseen is worse than an error."""
    with pytest.raises(ContentError, match="data is not base64"):
        content_from_wire({"type": "image", "data": data, "mimeType": "image/png"})


def test_base64_may_be_cut_into_lines() -> None:
    """As MIME encoders do."""
    item = {"type": "audio", "data": "AAEC\r\nAwQF\n", "mimeType": "audio/wav"}
    assert content_from_wire(item) == Audio(b"\0\1\2\3\4\5", "audio/wav")


def test_what_is_not_known_is_kept() -> None:
    """A type of a later revision."""
    raw = {"type": "hologram", "depth": 3}
    content = content_from_wire(raw)
    assert content == UnknownContent(raw)
    assert content.to_wire() == raw


def test_members_of_the_wrong_type_that_are_optional_are_left_out() -> None:
    """They are not worth losing the answer."""
    item = {
        "type": "resource_link", "uri": "u", "name": "n", "title": 5, "size": True, "mimeType": [],
        "annotations": "x", "_meta": None,
    }  # fmt: skip
    assert content_from_wire(item) == ResourceLink("u", "n")
    assert content_from_wire({**item, "size": 7}) == ResourceLink("u", "n", size=7)


def test_the_wire_form() -> None:
    """Names as in the specification; nothing that was not given."""
    assert Text("t").to_wire() == {"type": "text", "text": "t"}
    assert Image(b"\xff", "image/png", annotations={"priority": 1}, meta={"a": 1}).to_wire() == {
        "type": "image", "data": "/w==", "mimeType": "image/png", "annotations": {"priority": 1},
        "_meta": {"a": 1},
    }  # fmt: skip
    assert ResourceLink("u", "n", size=0).to_wire() == {
        "type": "resource_link", "uri": "u", "name": "n", "size": 0,
    }  # fmt: skip
    assert EmbeddedResource("u", data=b"", mime_type="m").to_wire() == {
        "type": "resource", "resource": {"uri": "u", "mimeType": "m", "blob": ""},
    }  # fmt: skip
    assert Message("hi").to_wire() == {"role": "user", "content": {"type": "text", "text": "hi"}}


@pytest.mark.parametrize("kind", [EmbeddedResource, Contents])
def test_a_resource_has_text_or_data(kind: Any) -> None:
    """Exactly one; an empty one counts."""
    for half in ({}, {"text": "t", "data": b"d"}, {"text": "", "data": b""}):
        with pytest.raises(ValueError, match=f"{kind.__name__} needs exactly one"):
            kind("u", **half)
    assert kind("u", text="").to_wire()
    assert kind("u", data=b"").data == b""


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda v: Text(v), "Text.text must be a str"),
        (lambda v: Image(v, "m"), r"Image.data must be bytes \(not base64 text\)"),
        (lambda v: Image(b"", v), "Image.mime_type must be a str"),
        (lambda v: Audio(v, "m"), "Audio.data must be bytes"),
        (lambda v: ResourceLink(v, "n"), "ResourceLink.uri must be a str"),
        (lambda v: ResourceLink("u", v), "ResourceLink.name must be a str"),
        (lambda v: EmbeddedResource("u", text=v), "EmbeddedResource.text must be a str"),
        (lambda v: EmbeddedResource("u", data=v), "EmbeddedResource.data must be bytes"),
        (lambda v: EmbeddedResource(v, text=""), "EmbeddedResource.uri must be a str"),
        (lambda v: Contents(data=v), "Contents.data must be bytes"),
        (lambda v: Message(v), "content must be a str or a content object"),
    ],
)
def test_a_value_of_another_type_is_refused_where_it_is_built(
    make: Callable[[Any], object], why: str
) -> None:
    """In the callback, so that the traceback shows the line."""
    with pytest.raises(TypeError, match=f"{why}.*, not (a )?(int|list)"):
        make(5)
    with pytest.raises(TypeError, match=why):
        make([])


def test_base64_text_as_data_is_refused() -> None:
    """The most likely mistake is named."""
    with pytest.raises(TypeError, match="must be bytes"):
        Image("iVBORw0KGgo=", "image/png")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_data_is_always_bytes(kind: Any) -> None:
    """A buffer is copied: its owner may change it."""
    source = bytearray(b"abc")
    image = Image(kind(source), "m")
    source[0] = 0
    assert image == Image(b"abc", "m")
    assert type(image.data) is bytes


def test_messages_have_a_role() -> None:
    """One of two, on both sides."""
    assert Message("a", "assistant").content == Text("a")
    for role in ("system", "", None):
        with pytest.raises(ValueError, match="role must be 'user' or 'assistant'"):
            Message("a", role)  # type: ignore[arg-type]
        with pytest.raises(ContentError, match="no valid role"):
            message_from_wire({"role": role, "content": {"type": "text", "text": "a"}})


def test_reprs_hold_no_data() -> None:
    """A picture does not flood a log."""
    for content in (Image(b"x" * 99, "m"), Audio(b"x" * 99, "m"), Contents(data=b"x" * 99)):
        assert "xxx" not in repr(content)
