"""The command."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from pipeline.commands.command import JSON, Command
from pipeline.commands.compare import shown
from pipeline.commands.compare.difference import Difference, difference
from pipeline.commands.compare.sides import sides
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.reported import reported
from pipeline.errors import PipelineError
from pipeline.runs.workspace import Workspace
from stages.messages import escape

_MOST = 20  # layers, unless --all


def _option(name: str, help_: str, type_: type = str) -> dict[str, Any]:
    return {"name": name, "long": name, "short": "", "type": type_, "default": type_(), "help": help_}


class Compare(Command):
    """`doit compare`."""

    name = "compare"
    names = "what to compare"
    doc_purpose = "set two runs side by side: instructions, memory, accuracy, layers by effect"
    doc_usage = "A B [--all] [--markdown FILE] [--html FILE] [--json] [--fail-above 1%]"
    doc_description = (
        "A and B: a recipe, NAME@TARGET, a report.json or its folder, git:REV:NAME, or git:REV for the other side's "
        "recipe as it was then. What has not run yet is run. Cycles of a board are not set against instructions."
    )
    cmd_options = (
        _option("all", "all layers that differ, not the first 20", bool),
        _option("markdown", "write a Markdown page too, `-` instead of what is printed"),
        _option("html", "write an HTML page too"),
        JSON,
        _option("fail-above", "exit code 3 when B has more instructions, RAM or ROM by more than this many percent"),
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print it. Returns the exit code."""
        return reported(lambda: self._compare(opt_values, pos_args))

    def _compare(self, options: dict[str, Any], named: list[str]) -> int:
        limit = _percent(options["fail-above"])
        if len(named) != 2:
            raise PipelineError(
                f"doit compare takes two, got {len(named)}", hint="doit compare kws_rvp kws_rvp@rv32-rvp"
            )
        with Workspace() as workspace:
            project, store = workspace.project, workspace.store.folder
        before, after = sides((named[0], named[1]), project, store)
        networks = [one.report["model"] for one in (before, after)]
        if len({network.get("sha256") for network in networks}) > 1:
            both = " and ".join(escape.name(network["name"]) for network in networks)
            sys.stderr.write(f"note: the networks are two, {both}\n")
        found = difference((before.name, after.name), before.report, after.report)
        _print(found, options)
        if limit is None:
            return 0
        if not found.one_counter:
            first, second = map(escape.name, found.counters)
            sys.stderr.write(f"note: A counts {first}, B {second}: no limit holds for these\n")
        grown = found.grown(limit)
        for one in grown:
            by = f"by {one.percent:.2f} %" if one.percent is not None else ""
            sys.stderr.write(f"{one.name}: {one.before or 0:,} -> {one.after:,} {by}".rstrip() + ", above the limit\n")
        return PENDING if grown else 0


def _print(found: Difference, options: dict[str, Any]) -> None:
    most = len(found.layers) if options["all"] else _MOST
    if options["html"]:
        _write(options["html"], shown.page(found))
    if options["markdown"] == "-":
        print(shown.markdown(found, most), end="")
        return
    if options["markdown"]:
        _write(options["markdown"], shown.markdown(found, most))
    print(shown.as_json(found) if options["json"] else "\n".join(shown.text(found, most)))


def _write(name: str, content: str) -> None:
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{escape.name(name)} cannot be written: {error.strerror}") from None


def _percent(given: str) -> float | None:
    if not given:
        return None
    if not re.fullmatch(r"\d{1,6}(\.\d{0,6})?\s*%?", given):
        raise PipelineError(f"--fail-above {escape.name(given)}: should be a number of percent, such as 1%")
    return float(given.rstrip("% "))
