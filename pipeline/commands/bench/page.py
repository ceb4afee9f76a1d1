"""Figures as Markdown: a page, and the sections of docs/reference/figures.md and README.md."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.ratio import ratio_tables
from pipeline.commands.bench.record import Record
from pipeline.commands.bench.run import Outcome
from pipeline.commands.bench.suite import Suite
from pipeline.commands.bench.table import case_table, cycles_table, recipe_table, sources
from pipeline.errors import PipelineError
from pipeline.terminal.table import markdown
from stages.support.messages.escape import markdown as escaped
from stages.support.system.atomic_write import write_atomically

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def page(outcomes: Iterable[Outcome], suite: Suite) -> str:
    """Return Markdown: all cases, the suite's ratios, and the sources of the baselines."""
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
    """Return the section of the stored figures, with a list of cases without figures."""
    cases = list(cases)
    measured = [Outcome(case, records[case.id]) for case in cases if case.id in records]
    missing: dict[str, list[str]] = {}
    for case in cases:
        if case.id not in records:
            missing.setdefault(case.row, []).append(case.target)
    intro = (
        "`doit bench --update` writes these tables, `doit bench --check` compares them with new measurements.\n\n"
        "- Figures are instructions of one inference; cycles on boards with an accelerator.\n"
        "- Arena, RAM and ROM are in bytes. RAM includes the arena and the measured stack.\n"
        "- Verdict: output values that differ from LiteRT's, and how many layers were compared.\n"
        "  With `engine` the reference is the accelerator's own integer arithmetic.\n"
        "- Ratio: the other tool's figure divided by Firmline's. Cycles and instructions have no ratio.\n"
    )
    text = f"{intro}\n{page(measured, suite)}"
    names = ", ".join(f"{row} ({', '.join(targets)})" for row, targets in missing.items())
    return f"{text}\nNot measured: {names}.\n" if missing else text


def replace_section(text: str, section: str, page: str) -> str:
    """Return `text` with `section` between the two markers.

    Raises PipelineError unless each marker occurs once, in order.
    """
    begin, end = text.find(BEGIN), text.find(END)
    if text.count(BEGIN) != 1 or text.count(END) != 1 or end < begin:
        raise PipelineError(f"{page} needs the lines {BEGIN} and {END}, once each, around the table")
    return f"{text[: begin + len(BEGIN)]}\n{section.strip()}\n{text[end:]}"


def short_section(cases: Iterable[Case], suite: Suite, records: Mapping[tuple[str, str], Record]) -> str:
    """Return README.md's table of the rows that the suite lists as `shown`, or ''."""
    shown = [Outcome(case, records[case.id]) for case in cases if case.id in records and suite.shows(case.id)]
    return markdown(recipe_table(shown)) if shown else ""


def update_page(path: Path, section: str) -> bool:
    """Write the section into a page. Returns whether it changed. Raises PipelineError."""
    text = path.read_text(encoding="utf-8")
    new = replace_section(text, section, path.name)
    if new != text:
        write_atomically(path, new)
    return new != text
