"""docs/reference/operators.md matches the declarations and the stages."""

from stages.ir.operators.page import page
from stages.ir.operators.table import OPERATORS
from stages.quantize.patterns import MOVES, PATTERNS
from tests.support.emitted import ROOT


def rows() -> dict[str, list[str]]:
    lines = page().partition("| operator |")[2].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {name: rest for name, *rest in cells}


def test_page_is_current() -> None:
    """If not: python -m stages.ir.operators.page > docs/reference/operators.md"""
    assert (ROOT / "docs/reference/operators.md").read_text() == page()


def test_8_bits_are_computed_where_quantize_has_a_pattern() -> None:
    for name, (_, eight, *_) in rows().items():
        types = OPERATORS[name].tensors.types
        able = name in PATTERNS and "int8" in types
        exact = "exact" if "uint8" in types else "int8: exact"
        assert eight == ("moved" if name in MOVES else exact if able else "–"), name
