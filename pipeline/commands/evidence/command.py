"""`doit evidence`: arguments and output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.commands.command import JSON, Command, single_recipe, variables
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.report_errors import report_errors
from pipeline.documents.overrides import RECIPE_VARIABLES, each_target
from pipeline.errors import PipelineError
from pipeline.project import current_project
from pipeline.terminal.progress import ProgressDisplay
from stages.base import StageError
from stages.support.messages import escape

_CHECK = {
    "name": "check",
    "long": "check",
    "short": "",
    "type": bool,
    "default": False,
    "help": "compare existing evidence with the files of today; runs nothing",
}


class Evidence(Command):
    """`doit evidence`."""

    name = "evidence"
    group = "ship"
    examples = (
        ("kws_rvp", "into build/kws_rvp/TARGET/evidence"),
        ("kws_rvp --check", "whether firmware, model and data are those of the evidence"),
    )
    variables = RECIPE_VARIABLES
    names = "recipe"
    doc_purpose = "write what a review asks for: MISRA C, stack bound, rebuild, bill of materials, provenance"
    doc_usage = "NAME [target=… model=… set=…] [--check] [--json]"
    doc_description = (
        "Runs the recipe first, from the store if nothing changed. Exit code 3: a check failed or could not run, or "
        "with --check a file differs. docs/how-to/evidence.md describes the files."
    )
    cmd_options = (_CHECK, JSON)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Write or check evidence. Returns the exit code."""
        return report_errors(lambda: self._run(variables(), pos_args, opt_values))

    def _run(self, values: dict[str, str], named: Sequence[str], options: dict[str, Any]) -> int:
        from pipeline.commands.evidence.check import check
        from pipeline.commands.evidence.write import write_evidence

        recipe, project = single_recipe("evidence", values, named), current_project()
        display, results = ProgressDisplay(), []
        try:
            for of_target in each_target(values):
                if options["check"]:
                    results.append(check(recipe, of_target, project=project))
                else:
                    results.append(write_evidence(recipe, of_target, project=project, display=display))
        except StageError as error:
            raise PipelineError(error.message, hint=error.hint) from None
        finally:
            display.close()
        if options["json"]:
            print(json.dumps(results if len(results) > 1 else results[0], indent=1))
        else:
            print("\n".join(map(_summary, results)))
        return 0 if all(result["holds"] for result in results) else PENDING


def _summary(result: dict[str, Any]) -> str:
    lines = [f"{result['recipe']} for {result['target']}: {result['folder']}"]
    if "differences" in result:
        lines += result["differences"] or [f"{result['files']} files are those of the evidence"]
    else:
        lines += [f"{entry['about']:<20} {entry['result']}" for entry in result["evidence"]]
    return "\n".join(map(escape.line, lines))
