"""Commands of earlier versions that do nothing: kernels are counted in every run."""

from __future__ import annotations

import sys
from typing import Any

from pipeline.commands.command import JSON, Command, command_option
from pipeline.commands.help import REMOVED


class _RemovedCommand(Command):
    """A command that prints a notice and exits with 0."""

    group = REMOVED
    examples = (("", "prints a note"),)
    names = "recipes"
    keys_help = (("drawn", "ignored"), ("close", "ignored"), ("seed", "ignored"))
    variables = ("recipe", "target", "model", "set", "drawn", "close", "seed", "executor")
    doc_purpose = "ignored: kernels are counted in every run"
    doc_usage = ""
    doc_description = "Runs count kernels on the simulator when they first need them, and store the counts."
    cmd_options = (*(command_option(name, "ignored") for name in ("all", "sample", "check", "cycles")), JSON)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        sys.stderr.write(f"doit {self.name} is ignored: runs count kernels when they first need them\n")
        return 0


class Calibrate(_RemovedCommand):
    """`doit calibrate`, which wrote cost tables."""

    name = "calibrate"


class Tune(_RemovedCommand):
    """`doit tune`, which counted a model's layers before its runs."""

    name = "tune"
