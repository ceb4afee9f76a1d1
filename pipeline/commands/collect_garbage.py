"""`doit gc`: delete old artifacts from the store."""

import json
import re
from typing import Any

from pipeline.commands.command import JSON, Command, command_option
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
        command_option("days", "delete artifacts that no run has used for this many days", str),
        command_option("size", "delete the oldest until the store is this small, such as 500M or 2G", str),
        JSON,
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        days, size = options["days"], options["size"]
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
        print(json.dumps({"artifacts": count, "bytes": freed}) if options["json"] else summary)
        return 0
