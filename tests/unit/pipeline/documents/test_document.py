"""Positions in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.documents.document import Document, Position, load_document
from pipeline.errors import RecipeError

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


def test_locate_key(document: Document) -> None:
    assert document.locate(("more", "opt"), key=True) == Position(6, 3)


def test_merge_key_may_be_overridden_but_no_other_twice(document: Document, tmp_path: Path) -> None:
    assert document.data["more"] == {"flags": ["-a", "-b"], "opt": "O2"}
    path = tmp_path / "twice.yaml"
    path.write_text("a:\n  b: 1\n  c: 2\n  b: 3\n")
    with pytest.raises(RecipeError, match=r"twice.yaml:4:3: key 'b' is given twice"):
        load_document(path, "twice.yaml")


def test_caret_stands_below_a_tab(document: Document) -> None:
    shown = Document("t", "a:\tx\n", None).error("wrong", ("a",))
    assert str(shown).splitlines()[1:] == ["    1 | a:\tx", "      |   \t^"]
