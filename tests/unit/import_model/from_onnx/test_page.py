"""docs/onnx.md names the operators that are read, no more and no fewer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from stages.import_model.onnx.operators import FOLDED, MOVES, TRANSLATORS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "onnx.md"


def test_the_page_has_all_operators() -> None:
    rows = PAGE.read_text().partition("| operators | what of them |")[2].split("\n\n")[0].splitlines()[2:]
    named = [name.rpartition(".")[2] for row in rows for name in re.findall(r"\w+", row.split("|")[1])]
    assert sorted(named) == sorted(name.rpartition(".")[2] for name in (*TRANSLATORS, *MOVES, *FOLDED))
