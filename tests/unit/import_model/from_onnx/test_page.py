"""docs/how-to/onnx.md names the operators that are read, no more and no fewer."""

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx

from stages.import_model.onnx.operators import FOLDED, MOVES, TRANSLATORS

PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/onnx.md"


def test_the_page_has_all_operators() -> None:
    rows = PAGE.read_text().partition("| operators | supported |")[2].split("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"\w+", row.split("|")[1])]
    assert sorted(named) == sorted({name.rpartition(".")[2] for name in (*TRANSLATORS, *MOVES, *FOLDED)})


def test_the_page_has_all_that_is_refused() -> None:
    """Of the newest opset of the package."""
    schemas = onnx.defs.get_all_schemas()
    standard = {schema.name for schema in schemas if schema.domain in ("", "ai.onnx") and not schema.deprecated}
    refused_list = re.search(r"except the random ones:\s(.*?)\.\n", PAGE.read_text(), re.DOTALL)
    assert refused_list is not None
    assert sorted(re.findall(r"\w+", refused_list[1])) == sorted(standard - {*TRANSLATORS, *MOVES, *FOLDED})
