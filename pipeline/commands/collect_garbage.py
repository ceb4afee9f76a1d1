"""`doit gc`: trim the artifact store."""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.commands.command import JSON, Command
from pipeline.commands.reported import reported
from pipeline.errors import PipelineError
from pipeline.runs.workspace import Workspace
from stages.targets.memory import parse_size


class CollectGarbage(Command):
    """`doit gc`: trim the artifact store."""

    name = "gc"
    doc_purpose = "delete old artifacts from the store"
    doc_usage = "--days N | --size SIZE [--json]"
    doc_description = "An artifact's age counts from the last run that used it, to the day."
    cmd_options = (
        {
            "name": "days",
            "long": "days",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete artifacts that no run used for this many days",
        },
        {
            "name": "size",
            "long": "size",
            "short": "",
            "type": str,
            "default": "",
            "help": "delete the oldest until this much remains, such as 500M or 2G",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Delete, and print how much went. Returns the exit code."""
        return reported(lambda: self._collect(opt_values["days"], opt_values["size"], as_json=opt_values["json"]))

    def _collect(self, days: str, size: str, *, as_json: bool) -> int:
        if not days and not size:
            raise PipelineError("give --days N, or --size SIZE such as 2G, or both")
        if days and not re.fullmatch(r"\d+(\.\d*)?", days):
            raise PipelineError(f"doit gc: --days {days}: should be a number of days, such as 7")
        try:
            limits: dict[str, Any] = {"days": float(days) if days else None, "size": parse_size(size) if size else None}
        except ValueError as error:
            raise PipelineError(f"doit gc: --size {size}: {error}") from None
        count, freed = Workspace().store.trim(**limits)
        told = f"deleted {count} artifacts, {freed / 1e6:.1f} MB"
        print(json.dumps({"artifacts": count, "bytes": freed}) if as_json else told)
        return 0
