"""Positions in YAML."""

from pathlib import Path

import pytest

from pipeline.documents.document import Document, Position, load_document

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
