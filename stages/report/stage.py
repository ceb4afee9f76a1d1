"""Stage report: write the results of the other stages as a report.

Writes report.json, pages in HTML and Markdown, a timeline, and the terminal's table.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageError, Tool
from stages.ir.models.sources import ModelSource
from stages.report.config import ReportConfig


class ReportStage(Stage[ReportConfig]):
    """Stage that writes the report of a run."""

    kind = "report"
    config = ReportConfig
    consumes = ("import", "layout", "quantize", "tensorize", "emit")
    may_consume = ("ptq", "compile", "simulate", "verify")

    def inputs(self, config: ReportConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return Jinja, the templates, and fields of the target."""
        return ActionInputs(
            tools=(Tool("jinja2", package="jinja2"),),
            sources=(
                "stages/report/*.py",
                "stages/report/templates/*.j2",
                "stages/report/html/*.py",
                "stages/report/html/templates/*",
                "stages/backends/timing/silicon.json",
            ),
            target_fields=(
                *("name", "core", "extensions", "counter", "board", "memory", "simulated", "simulator"),
                *("accelerator", "timing_model", "flash"),
            ),
        )

    def preflight(
        self, config: ReportConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check the clock, and class names against the elements of the first output."""
        if config.clock and target.board is not None and target.board.clock not in (None, config.clock):
            message = (
                f"{target.name} has a clock of {target.board.clock / 1e6:g} MHz; its wait states are for this clock"
            )
            raise StageError(message, hint="Remove stages.report.clock.", at=("stages", "report", "clock"))
        if not config.classes:
            return
        from stages.ir.models.local_model import local_model
        from stages.ir.samples.network import inputs_and_classes
        from stages.report.classes import check_classes

        info = local_model(model, root, artifacts)
        elements = None if info is None else inputs_and_classes(info)[1]
        if elements is not None:
            check_classes(config.classes, elements)

    def run(self, job: Job[ReportConfig]) -> None:
        """Write the report."""
        from stages.report.build import write_report

        job.progress("writing the report")
        write_report(job)

    def render(self, report: dict[str, Any], width: int) -> Any:
        """Return the report as a table for the terminal."""
        from stages.report.terminal import render

        return render(report, width=width)


STAGE = ReportStage()
