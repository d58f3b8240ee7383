"""The reference pages and the code say the same."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import raxol_sync
from tests.docs.tables import (
    LOCKS,
    MAKERS,
    MARKED,
    PACKAGE,
    ROOT,
    created,
    made,
    modules,
    pages,
    thread_names,
)
from tests.schema.test_texts import OF_HINTS, OF_SCHEMAS

REFERENCE = [page for page in pages() if "reference" in str(page.relative_to(ROOT))]
TABLES = [
    (page, match["name"])
    for page in pages()
    for match in MARKED.finditer(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "name"), TABLES, ids=[name for _, name in TABLES])
def test_a_table_is_what_the_code_says(page: object, name: str) -> None:
    """If not, run `python -m tests.docs.tables` and read what has changed."""
    found = [
        match["text"]
        for match in MARKED.finditer(page.read_text(encoding="utf-8"))  # type: ignore[attr-defined]
        if match["name"] == name
    ]
    assert found == [made(name)], "run: python -m tests.docs.tables"


def test_every_table_is_used() -> None:
    """No maker is left without a page."""
    assert {name.split()[0] for _, name in TABLES} == set(MAKERS)


@pytest.mark.parametrize("name", raxol_sync.__all__)
def test_every_public_name_is_on_a_reference_page(name: str) -> None:
    """In code letters; a class with methods has a table of its members."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    assert re.search(rf"`{name}[`(]", text), f"{name} is on no page below docs/reference"
    value = getattr(raxol_sync, name)
    plain = not inspect.isclass(value) or issubclass(value, BaseException)
    if not plain and not hasattr(value, "__dataclass_fields__") and name != "PromptMessages":
        assert f"<!-- table: members {name} -->" in text


FOR_USERS = [
    page
    for page in [*pages(), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    if page.name != "parity.md" and page.parent.name != "explanation"
]


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.name)
def test_pages_for_users_name_no_rows(page: Path) -> None:
    """The numbers of the page on parity say nothing to them."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.S)
    assert re.findall(r"\b[CS]\d\d\b", text) == []


ERRORS = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
# Caught inside the package: their texts are told in another exception, a result or a log.
INSIDE = {
    "AppError", "ArgumentError", "AttributeError", "BadState", "ContentError", "EncodeError",
    "FailedForGood", "Failure", "GoneError", "InputError", "InputNeeded", "Mismatch",
    "NoAnswer", "NotImplementedError", "Refused", "RefusedError", "ResultError", "StopIteration",
    "TemplateError", "TooMany", "Unsendable", "UnsupportedHint", "UnusableAnswer", "UsageError",
    "WebError", "ArgumentTypeError",
}  # fmt: skip


def raised_names() -> Iterator[tuple[str, str]]:
    """Yield module and name of each exception class in a `raise`; ours with _ are internal."""
    for module, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                name = ast.unparse(made).rpartition(".")[2]
                if name.isidentifier() and name[0].isupper():
                    yield module, name


def test_every_exception_that_is_raised_is_on_the_page_of_errors() -> None:
    """But those that never leave the package."""
    found = set(raised_names())
    assert len(found) > 50
    missing = {(module, name) for module, name in found if f"{name}`" not in ERRORS}
    assert {name for _, name in missing} <= INSIDE, missing


def test_every_text_of_an_argument_error_on_the_page_is_a_real_one() -> None:
    """Each row of the table is in the list of texts that the code is checked against."""
    rows = re.search(r"\| what is wrong \| text \|\n(.*?)\n\n", ERRORS, re.S)
    assert rows is not None
    shown = re.findall(r"`('.*)` \|$", rows[1], re.M)
    assert len(shown) > 10
    assert set(shown) <= {text for *_, text in (*OF_HINTS, *OF_SCHEMAS)}


def test_every_lock_says_what_it_guards() -> None:
    """With a comment where it is made, which the page repeats."""
    rows = [row.split(" | ") for row in made("locks").splitlines()[2:]]
    assert not [row[:2] for row in rows if len(row[2].removesuffix(" |").strip()) < 10]


def test_no_lock_is_made_without_a_name() -> None:
    """The table finds locks by the names that they are assigned to."""
    for module, path in modules():
        source = path.read_text(encoding="utf-8")
        made_here = sum(len(re.findall(rf"threading\.{kind}\(", source)) for kind in LOCKS)
        assert made_here == len(created(path, LOCKS)), module


@pytest.mark.parametrize("name", sorted(thread_names()))
def test_every_thread_is_on_the_page(name: str) -> None:
    """By its name."""
    page = (ROOT / "docs" / "explanation" / "threads.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page


def test_every_thread_has_a_name_and_is_started_in_a_module_of_the_page() -> None:
    """No thread is anonymous."""
    page = (ROOT / "docs" / "explanation" / "threads.md").read_text(encoding="utf-8")
    for module, path in modules():
        for call in re.finditer(r"threading\.Thread\((?P<words>[^#]*?)\n", path.read_text()):
            assert f"`{module}`" in page, f"{module} starts threads and is not on the page"
            following = path.read_text()[call.start() : call.start() + 400]
            assert "name=" in following, f"{PACKAGE.name}.{module} starts a thread without a name"
