"""Commands of earlier versions: kernels are counted in every run, so there is nothing left for them to do."""

from __future__ import annotations

import sys
from typing import Any

from pipeline.commands.command import JSON, Command


def _flag(name: str) -> dict[str, Any]:
    return {"name": name, "long": name, "short": "", "type": bool, "default": False, "help": "ignored"}


class _Former(Command):
    """Says once that it does nothing, and ends well."""

    names = "recipes"
    variables = ("recipe", "target", "model", "set", "drawn", "close", "seed", "executor")
    doc_purpose = "ignored: kernels are counted in every run"
    doc_usage = "(no longer needed)"
    doc_description = "Kernels are counted on the simulator when a run first needs them, and kept in the store."
    cmd_options = (*map(_flag, ("all", "sample", "check", "cycles")), JSON)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print the notice. Returns the exit code."""
        sys.stderr.write(f"doit {self.name} is ignored: kernels are counted when a run first needs them\n")
        return 0


class Calibrate(_Former):
    """`doit calibrate`, which wrote tables of costs."""

    name = "calibrate"


class Tune(_Former):
    """`doit tune`, which counted a network's layers ahead of its runs."""

    name = "tune"
