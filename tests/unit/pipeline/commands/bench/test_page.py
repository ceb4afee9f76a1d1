"""What the tables say, and the sections of docs/reference/figures.md and README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.commands.bench.cases import Case, suite_cases
from pipeline.commands.bench.page import BEGIN, END, figures_section, replace_section, short_section
from pipeline.commands.bench.ratio import ratio_tables, short_ratios
from pipeline.commands.bench.record import read_records
from pipeline.commands.bench.run import Outcome
from pipeline.commands.bench.suite import load_suite
from pipeline.commands.bench.table import case_table, cycles_table
from pipeline.errors import PipelineError
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.commands.bench.bench_support import case, record, suite_file


def cells(outcome: Outcome) -> dict[str, str]:
    table = case_table([outcome])
    return dict(zip(table.columns, table.rows[0], strict=True))


def net(tmp_path: Path) -> Case:
    """The case of `net` on rv64-rvp, beside which stand 5,000 instructions of one and 3,000 cycles of another."""
    return suite_cases(load_suite(suite_file(tmp_path)).rows, tmp_path, tmp_path)[0]


def test_row_of_a_measured_case(tmp_path: Path) -> None:
    assert cells(Outcome(net(tmp_path), record())) == {
        "model": "net",
        "target": "rv64-rvp",
        "verdict": "0 of 20, 2 layers",
        "instructions": "1,000",
        "per MAC": "2.000",
        "arena": "1,500",
        "RAM": "2,000",
        "ROM": "10,000",
        "others": "RFC 5,000\nCore 3,000 cycles",
        "ratio": "5.00",
    }


def test_cycles_have_a_table_of_their_own_with_what_is_allowed() -> None:
    exact, engine = record(cycles=True), record(cycles=True, share=0.25, target="rv32-ne16")
    outcomes = [
        Outcome(case(), record()),
        Outcome(Case("net", "rv64-rvp", {}, "demo", at_most=1200), exact),
        Outcome(case(target="rv32-ne16"), engine),
        Outcome(case(), exact, "not exact"),
    ]
    table = cycles_table(outcomes)
    assert table is not None
    figures = ("0.5", "300", "700", "650", "90", "990")
    assert table.rows == (
        ("net", "rv64-rvp", "1,000", "1,200", *figures, "none"),
        ("net", "rv32-ne16", "1,000", "", *figures, "25 %, by 3 at most"),
    )
    assert cells(outcomes[2])["verdict"] == "0 of 20, 2 layers, engine"
    assert cells(outcomes[3])["verdict"] == "failed: not exact"
    assert cycles_table(outcomes[:1]) is None


def test_ratio_divides_ours_and_theirs(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path))
    int8, float32 = record(), record((("all", 8_500),), row="net_fp32", target="rv64-scalar")
    ((title, table),) = ratio_tables(suite, {int8.id: int8, float32.id: float32})
    assert title == "FP32 against int8"
    assert table.columns == ("network", "FP32", "int8", "ratio", "RFC FP32", "RFC int8", "RFC ratio")
    assert table.rows == (("Net", "8,500", "1,000", "8.50", "20,000", "5,000", "4.00"),)
    ((_, half),) = ratio_tables(suite, {int8.id: int8})
    assert half.rows == (("Net", "", "1,000", "", "20,000", "5,000", "4.00"),)
    assert ratio_tables(suite, {}) == []
    for instructions, lines in ((500, []), (499, ["Net, FP32 against int8: 499 / 1,000 is 0.499, below 0.5"])):
        float32 = record((("all", instructions),), row="net_fp32", target="rv64-scalar")
        assert short_ratios(suite, {int8.id: int8, float32.id: float32}) == lines


def test_section_is_replaced_and_the_rest_stays() -> None:
    text = f"# Title\n\n{BEGIN}\nold\nlines\n{END}\nafter\n"
    once = replace_section(text, "| new |\n", "x.md")
    assert once == f"# Title\n\n{BEGIN}\n| new |\n{END}\nafter\n"
    assert replace_section(once, "| new |\n", "x.md") == once
    with pytest.raises(PipelineError, match="once each"):
        replace_section(f"{END}\n{BEGIN}", "x", "x.md")


def test_the_pages_are_of_what_is_stored() -> None:
    """docs/reference/figures.md has docs/bench.json; README.md has the rows that the suite shows."""
    suite = load_suite()
    cases = suite_cases(suite.rows, ROOT, ROOT / "nowhere")
    records = read_records(ROOT / "docs/bench.json")
    for name, section in (("docs/reference/figures.md", figures_section), ("README.md", short_section)):
        text = (ROOT / name).read_text()
        assert replace_section(text, section(cases, suite, records), name) == text, f"doit bench --update writes {name}"
    assert {(row_on.row, row_on.target) for row_on in suite.shown} <= records.keys()
    shown = {row_on.row for row_on in suite.shown}
    assert not any(row.file or row.model for row in suite.rows if row.name in shown), "rows that run by a recipe's name"
