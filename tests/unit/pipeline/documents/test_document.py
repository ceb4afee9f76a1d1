"""Positions in YAML, and the cache of parsed texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.documents import document as module
from pipeline.documents.document import Document, Position, cached_parse, load_document

TEXT = """\
base: &base
  flags: [-a, -b]
  opt: O1
more:
  <<: *base
  opt: O2
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    path = tmp_path / "x.yaml"
    path.write_text(TEXT)
    return load_document(path, "x.yaml")


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ((), (1, 1)),
        (("base", "flags", 1), (2, 15)),
        (("more", "opt"), (6, 8)),
        (("more", "flags", 0), (2, 11)),
        (("more", "nothing"), (5, 3)),
        (("nothing",), (1, 1)),
    ],
)
def test_locate(document: Document, path: tuple[str | int, ...], position: tuple[int, int]) -> None:
    assert document.locate(path) == Position(*position)


def test_caret_stands_below_a_tab(document: Document) -> None:
    shown = Document("t", "a:\tx\n", None).error("wrong", ("a",))
    assert str(shown).splitlines()[1:] == ["    1 | a:\tx", "      |   \t^"]


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], bool]:
    """Return a function that looks a text up and returns whether it was parsed."""
    monkeypatch.setattr(module, "build_cache", lambda name: tmp_path / name)

    def ask(text: str, value: Any) -> bool:
        parses: list[str] = []
        assert repr(cached_parse(text, lambda: parses.append(text) or value)) == repr(value)
        return bool(parses)

    return ask


def test_a_text_is_parsed_once(parsed: Callable[[str, Any], bool]) -> None:
    assert [parsed("a: [1, 2.5]", {"a": [1, 2.5, None]}) for _ in range(2)] == [True, False]
    assert parsed("a: [1, 2.50]", {"a": [1, 2.5]})
    assert [parsed("", None) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("value", [{1: "a"}, [float("nan")], {"a": b"b"}])
def test_values_that_json_cannot_represent_are_not_cached(parsed: Callable[[str, Any], bool], value: Any) -> None:
    assert [parsed("text", value) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("change", [lambda text: text.replace("7", "8"), lambda text: text[:-1], lambda text: ""])
def test_damaged_entries_are_parsed_again(
    parsed: Callable[[str, Any], bool], tmp_path: Path, change: Callable[[str], str]
) -> None:
    assert parsed("a: 7", {"a": 7})
    (entry,) = (tmp_path / "documents").iterdir()
    entry.write_text(change(entry.read_text()))
    assert [parsed("a: 7", {"a": 7}) for _ in range(2)] == [True, False]


def test_a_new_parser_invalidates_the_cache(
    parsed: Callable[[str, Any], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parsed("a: 0777", {"a": 777})
    monkeypatch.setattr(module, "_parser_digest", lambda: "others")
    assert parsed("a: 0777", {"a": 511})
