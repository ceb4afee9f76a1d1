"""What the tables say, and the sections of docs/reference/figures.md and README.md."""

import pytest

from pipeline.commands.bench.cases import suite_cases
from pipeline.commands.bench.page import BEGIN, END, figures_section, replace_section, short_section
from pipeline.commands.bench.record import read_records
from pipeline.commands.bench.suite import load_suite
from pipeline.errors import PipelineError
from stages.support.system.installation import INSTALLATION as ROOT


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
    (ic02,) = [line for line in (ROOT / "docs/reference/figures.md").read_text().splitlines() if "| ic02_m4 |" in line]
    assert ic02.endswith("| none published |  |"), "a row's note stands where figures of others would"
