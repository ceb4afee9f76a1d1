"""`doit evidence`: arguments and output."""

from typing import Any

from pipeline.commands.command import JSON, Command, command_option, single_recipe, variables
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.target_results import print_results
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.project import current_project
from pipeline.terminal.progress import ProgressDisplay


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
    cmd_options = (command_option("check", "compare existing evidence with the files of today; runs nothing"), JSON)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        from pipeline.commands.evidence.check import check
        from pipeline.commands.evidence.write import write_evidence

        values, project = variables(), current_project()
        recipe = single_recipe(self.name, values, named)

        def work(of_target: dict[str, str], display: ProgressDisplay) -> dict[str, Any]:
            if options["check"]:
                return check(recipe, of_target, project=project)
            return write_evidence(recipe, of_target, project=project, display=display)

        results = print_results(values, work, _summary, as_json=options["json"])
        return 0 if all(result["holds"] for result in results) else PENDING


def _summary(result: dict[str, Any]) -> list[str]:
    lines = [f"{result['recipe']} for {result['target']}: {result['folder']}"]
    if "differences" in result:
        lines += result["differences"] or [f"{result['files']} files are those of the evidence"]
    else:
        lines += [f"{entry['about']:<20} {entry['result']}" for entry in result["evidence"]]
    return lines
