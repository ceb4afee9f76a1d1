"""One run of a matrix: results of its variants as a table, matrix.json, .html and .md."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.keys.planner import Plan
from pipeline.recipes.loader import LoadedRecipe
from pipeline.terminal.matrix_page import matrix_page
from pipeline.terminal.matrix_row import MatrixRow
from pipeline.terminal.progress import ProgressDisplay, time_left
from pipeline.terminal.table import Table, markdown
from stages.support.messages import escape
from stages.support.system.atomic_write import write_atomically

FORMAT = 1
_FIGURES = ("verdict", "instructions", "RAM", "ROM")
NOT_RUN = "not run"


class MatrixRun:
    """Collects the results of a matrix's variants. Methods may be called from several threads.

    A stage that several variants share runs once; its failure is the result of all of them.
    """

    def __init__(self, folder: Path, shown_folder: str, members: Sequence[LoadedRecipe]) -> None:
        self.name = members[0].recipe.name
        self._folder = folder
        self._shown = shown_folder
        self._members = tuple(members)
        self._lock = threading.Lock()
        self._plans: dict[str, Plan] = {}
        self._reports: dict[str, Mapping[str, Any]] = {}
        self._errors: dict[str, str] = {}
        self._begun = time.monotonic()
        self._reported: set[str] = set()

    def planned(self, plan: Plan) -> None:
        """Note the plan of a variant."""
        self._plans[plan.recipe] = plan

    def finished(self, title: str, report: Mapping[str, Any] | None) -> None:
        """Note the report of a finished variant."""
        with self._lock:
            self._reports[title] = report or {}

    def failed(self, what: str, message: str) -> None:
        """Note the failure of a variant (by its title) or an action (by its identity)."""
        with self._lock:
            self._errors[what] = message

    def row(self, member: LoadedRecipe) -> MatrixRow:
        """Return the result of a variant as far as it is known."""
        name, target, axes = member.variant, member.target.name, dict(member.labels)
        error = self._error(member.title)
        if error:
            return MatrixRow(name, target, axes, "failed", error=error)
        report = self._reports.get(member.title)
        if not report:
            return MatrixRow(name, target, axes, NOT_RUN if report is None else "no report")
        memory = report.get("memory", {})
        return MatrixRow(
            name,
            target,
            axes,
            verdict_of(report.get("verify", {})),
            report.get("instructions", {}).get("total"),
            memory.get("ram_bytes"),
            memory.get("rom_bytes"),
        )

    def rows(self) -> list[MatrixRow]:
        """Return all rows, in the order of the matrix."""
        return [self.row(member) for member in self._members]

    def line(self, title: str) -> str:
        """Return a line about a finished or failed variant: its number, and the time left."""
        self._reported.add(title)
        done, total = len(self._reported), len(self._members)
        time_text = time_left(time.monotonic() - self._begun, done, total - done)
        row = self.row(next(member for member in self._members if member.title == title))
        width = max(len(member.variant) for member in self._members)
        count = "" if row.instructions is None else f"{row.instructions:>15,} instructions"
        what = f"failed: {row.error.splitlines()[0]}" if row.error else f"{row.verdict}{count}"
        place = f"{done:>{len(str(total))}}/{total}"
        return escape.line(f"  {place} {row.name:{width}} {what}{f'   {time_text}' if time_text else ''}")

    @property
    def ended(self) -> tuple[int, int]:
        """The number of reported variants, and of all."""
        return len(self._reported), len(self._members)

    def end(self, display: ProgressDisplay) -> None:
        """Write matrix.json, matrix.html and matrix.md, and show the table. Raises OSError."""
        rows = self.rows()
        table = matrix_table(rows)
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._part()
        content = {"format": FORMAT, "recipe": self.name, "part": part, "rows": [asdict(row) for row in rows]}
        write_atomically(self._folder / "matrix.json", json.dumps(content, indent=1) + "\n")
        page = filter(None, (f"# {escape.markdown(self.name)}", escape.markdown(part), markdown(table)))
        write_atomically(self._folder / "matrix.md", "\n\n".join(page))
        write_atomically(self._folder / "matrix.html", matrix_page(self.name, part, rows, self._folder))
        display.show_table(table, self.name)
        display.line(f"{self._shown}/matrix.html, matrix.md, matrix.json")

    def _part(self) -> str:
        """Return a text such as `3 of the 11 combinations`; '' for a complete matrix."""
        complete = self._members[0].all_variants
        run = [member.variant for member in self._members]
        same = len(set(run) & set(complete))
        if same == len(run) == len(complete):
            return ""
        others = f", and {len(run) - same} that are not in the recipe" if len(run) > same else ""
        return f"{same} of the {len(complete)} combinations{others}"

    def _error(self, title: str) -> str:
        plan = self._plans.get(title)
        actions = [action.identity for action in plan] if plan is not None else []
        return next((self._errors[what] for what in (title, *actions) if what in self._errors), "")


def matrix_table(rows: Sequence[MatrixRow]) -> Table:
    """Return a row per variant: axes, verdict, instructions, bytes of RAM and ROM."""
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes))
    columns = (*(axis.rpartition(".")[2] for axis in axes), *_FIGURES)
    cells = tuple((*(row.axes.get(axis, "") for axis in axes), *_figures(row)) for row in rows)
    return Table(columns, cells, tuple(not row.error for row in rows))


def _figures(row: MatrixRow) -> tuple[str, ...]:
    verdict = f"failed: {row.error.splitlines()[0]}" if row.error else row.verdict
    numbers = (row.instructions, row.ram_bytes, row.rom_bytes)
    return verdict, *("" if number is None else f"{number:,}" for number in numbers)


def verdict_of(verify: Mapping[str, Any] | None) -> str:
    """Return a text such as `exact, 48 values, 13 layers`.

    Verify fails for anything not exact, except float outputs within tolerance. With an accelerator, exact means in its
    own arithmetic. For an ONNX file with near ties, each layer is exact, but outputs may differ from ONNX Runtime's.
    """
    if not verify:
        return "done" if verify is not None else "not verified"
    relative = (verify.get("float") or {}).get("max_relative")
    what = "exact" if not relative else f"float within {relative:.1g}"
    if distance := verify.get("distance"):
        exact, reference = "exact in the engine's arithmetic", "LiteRT"
        if verify.get("near_ties"):
            exact, reference = "exact but for near ties", "ONNX Runtime"
        what = f"{exact}, {100 * distance['outputs']['share']:.2g} % unlike {reference}"
    return f"{what}, {verify['outputs_checked']:,} values, {verify['layers_checked']} layers"
