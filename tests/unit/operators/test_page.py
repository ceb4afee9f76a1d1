"""docs/operators.md is what the declarations say, and what the stages do."""

from __future__ import annotations

from stages.operators.page import page
from stages.operators.table import OPERATORS
from stages.quantize.patterns import FAMILIES, MOVES
from tests.support.emitted import ROOT


def rows() -> dict[str, list[str]]:
    lines = page().partition("| operator |")[2].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def test_page_is_current() -> None:
    """If not: python -m stages.operators.page > docs/operators.md"""
    assert (ROOT / "docs/operators.md").read_text() == page()


def test_every_operator_has_a_row() -> None:
    assert list(rows()) == list(OPERATORS)
    assert all(len(cells) == 7 for cells in rows().values())


def test_8_bits_are_computed_where_quantize_has_a_pattern() -> None:
    for name, (_, eight, *_) in rows().items():
        types = OPERATORS[name].types
        able = name in FAMILIES and "int8" in types
        exact = "exact" if "uint8" in types else "int8: exact"
        assert eight == ("moved" if name in MOVES else exact if able else "–"), name


def test_some_rows_in_full() -> None:
    table = rows()
    assert table["SIN"] == ["`sin`", "–", "–", "float", "", "float32", ""]
    assert table["EXP"][:4] == ["`exp` .", "int8: exact", "exact", "float"]
    assert table["ADD"][:4] == ["`add` .", "exact", "exact", "float"]
    assert table["TRANSPOSE"] == [
        "`transpose` .",
        "moved",
        "moved",
        "moved",
        "int32, int64, bool: moved",
        "int8, uint8, int16, float32, int32, int64, bool",
        "input 1 is a constant",
    ]
    assert table["DEPTHWISE_CONV_2D"][6].startswith(
        "weights and bias are constants where they are quantized; one scale"
    )
    assert "weights may be int4 with int8 data" in table["DEPTHWISE_CONV_2D"][6]
