"""`doit gc`: delete old artifacts from the store."""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.commands.command import JSON, Command
from pipeline.commands.report_errors import report_errors
from pipeline.errors import PipelineError
from pipeline.runs.workspace import Workspace
from stages.backends.targets.memory import parse_size


class CollectGarbage(Command):
    """`doit gc`."""

    name = "gc"
    group = "maintain"
    examples = (
        ("days=30", "delete what no run has used for 30 days"),
        ("size=2G", "delete the oldest until the store has 2 GB"),
    )
    doc_purpose = "delete old artifacts from the store"
    doc_usage = "days=N | size=SIZE [--json]"
    doc_description = "The age of an artifact is the time since a run last used it, in days."
    cmd_options = (
        {
            "name": "days",
            "long": "days",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete artifacts that no run has used for this many days",
        },
        {
            "name": "size",
            "long": "size",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete the oldest until the store is this small, such as 500M or 2G",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Delete, and print the number and size of deleted artifacts. Returns the exit code."""
        return report_errors(lambda: self._collect(opt_values["days"], opt_values["size"], as_json=opt_values["json"]))

    def _collect(self, days: str, size: str, *, as_json: bool) -> int:
        if not days and not size:
            raise PipelineError("doit gc needs days=N, size=SIZE (such as 2G), or both")
        if days and not re.fullmatch(r"\d+(\.\d*)?", days):
            raise PipelineError(f"doit gc: days={days}: expected a number of days, such as 7")
        try:
            limits: dict[str, Any] = {"days": float(days) if days else None, "size": parse_size(size) if size else None}
        except ValueError as error:
            raise PipelineError(f"doit gc: size={size}: {error}") from None
        count, freed = Workspace().store.trim(**limits)
        summary = f"deleted {count} artifacts, {freed / 1e6:.1f} MB"
        print(json.dumps({"artifacts": count, "bytes": freed}) if as_json else summary)
        return 0
