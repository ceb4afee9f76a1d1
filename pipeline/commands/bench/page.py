"""The tables as a page, and as what `doit bench --update` writes into docs/reference/figures.md and README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.ratio import ratio_tables
from pipeline.commands.bench.record import Record
from pipeline.commands.bench.run import Outcome
from pipeline.commands.bench.suite import Suite
from pipeline.commands.bench.table import case_table, cycles_table, sources
from pipeline.errors import PipelineError
from pipeline.terminal.table import Table, markdown
from stages.messages.escape import markdown as escaped
from stages.system.asides import write_whole

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
_NOT_SHOWN = ("verdict", "arena")


def page(outcomes: Iterable[Outcome], suite: Suite) -> str:
    """Markdown: all cases, the suite's ratios where rows of them were measured, who the others are."""
    outcomes = list(outcomes)
    records = {outcome.case.id: outcome.record for outcome in outcomes if outcome.record and not outcome.failed}
    parts = [markdown(case_table(outcomes))]
    if cycles := cycles_table(outcomes):
        parts += ["Boards with an accelerator, cycles of one inference:\n", markdown(cycles)]
    for title, table in ratio_tables(suite, records):
        parts += [f"{escaped(title)}, instructions of one inference:\n", markdown(table)]
    others = sources(outcome.case for outcome in outcomes)
    if others:
        parts.append("".join(f"- {escaped(line)}\n" for line in others))
    return "\n".join(parts)


def figures_section(cases: Iterable[Case], suite: Suite, records: Mapping[tuple[str, str], Record]) -> str:
    """The page of the stored figures; what is not stored is named, not left out silently."""
    cases = list(cases)
    measured = [Outcome(case, records[case.id]) for case in cases if case.id in records]
    missing: dict[str, list[str]] = {}
    for case in cases:
        if case.id not in records:
            missing.setdefault(case.row, []).append(case.target)
    intro = (
        "Written by `doit bench --update`, checked by `doit bench --check`. Instructions of one inference, cycles on\n"
        "boards with an accelerator; arena, RAM and ROM in bytes, RAM with the arena and the stack really used.\n"
        "Verdict: output values that differ from LiteRT's (`engine`: from the integer reference of the accelerator's\n"
        "own arithmetic), and the layers that were compared as well. Ratio: what others need, by what this needs.\n"
    )
    text = f"{intro}\n{page(measured, suite)}"
    names = ", ".join(f"{row} ({', '.join(targets)})" for row, targets in missing.items())
    return f"{text}\nNot measured: {names}.\n" if missing else text


def replace_section(text: str, section: str, page: str) -> str:
    """`text` with `section` between the two markers. Raises PipelineError unless each is there once, in order."""
    begin, end = text.find(BEGIN), text.find(END)
    if text.count(BEGIN) != 1 or text.count(END) != 1 or end < begin:
        raise PipelineError(f"{page} needs the lines {BEGIN} and {END}, once each, around the table")
    return f"{text[: begin + len(BEGIN)]}\n{section.strip()}\n{text[end:]}"


def short_section(cases: Iterable[Case], suite: Suite, records: Mapping[tuple[str, str], Record]) -> str:
    """The table of README.md: the rows that the suite calls `shown`, as they are stored; '' without any."""
    found = [Outcome(case, records[case.id]) for case in cases if case.id in records and suite.shows(case.id)]
    if not found:
        return ""
    table = case_table(found)
    kept = [index for index, name in enumerate(table.columns) if name not in _NOT_SHOWN]
    rows = tuple(tuple(row[index] for index in kept) for row in table.rows)
    return markdown(Table(tuple(table.columns[index] for index in kept), rows, table.good))


def update_page(path: Path, section: str) -> bool:
    """Write the section into a page; whether that changed it. Raises PipelineError."""
    text = path.read_text(encoding="utf-8")
    new = replace_section(text, section, path.name)
    if new != text:
        write_whole(path, new)
    return new != text
