"""`doit run`: doit's command with Firmline's options."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from doit.cmd_run import Run as DoitRun
from doit.cmdparse import CmdParseError

from pipeline.commands.command import JSON, MOST_JOBS, CommandMixin, command_option
from pipeline.commands.executor import EXECUTOR, selected_executor
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.process.streams import Output
from stages.support.messages import escape

_DRY_OPTION = command_option(
    "dry-run", "print what would run, as `doit explain`, and run nothing; exit code 3 if a stage would run"
)
_RUN_HELP = {
    "always": "run all stages again, even if they are up to date",
    "continue": "continue with the other recipes if one fails [default: %(default)s]",
    "verbosity": "2: print tracebacks of errors",
    "outfile": "write the output to a file [default: stdout]",
    "num_process": f"number of stages that run in parallel, at most {MOST_JOBS} [default: 1]",
}


class Run(CommandMixin, DoitRun):  # type: ignore[misc]
    """`doit run`."""

    name = "run"
    group = "start"
    examples = (
        ("kws_rvp", "build, simulate and check one recipe"),
        ("kws_rvp target=cortex-m4,rv32-rvp", "on two other cores, one after the other"),
        ("digits_rvp model=zoo:resnet_8", "with another model"),
        ("kws_rvp set=stages.simulate.inputs.seed=3", "with another value of the recipe"),
        ("kws_rvp,ad_rvp -n 2", "two recipes, two stages at a time"),
        ("kws_rvp:emit", "only the stages up to emit"),
        ("kws_rvp --dry-run", "what would run, and why"),
    )
    doc_purpose = "run recipes, from a model to tested firmware"
    doc_usage = "NAME... [target=… model=… set=…] [-n JOBS] [-a] [-q] [--dry-run] [--json]"
    doc_description = (
        "Results are in build/NAME/TARGET/. A stage runs only if something that it depends on has changed. "
        "docs/reference/commands.md has all forms of NAME; executor= is described in docs/how-to/distributed.md."
    )
    names = "recipes"
    variables = RECIPE_VARIABLES
    own_variables = (EXECUTOR,)
    cmd_options = (*DoitRun.cmd_options, command_option("quiet", "print errors only", short="q"), _DRY_OPTION, JSON)
    offered_options = ("always", "continue", "verbosity", "outfile", "num_process", "quiet", "dry-run", "json")

    def get_options(self) -> list[Any]:
        """Return the options with Firmline's help texts."""
        options = super().get_options()
        for option in options:
            option.help = _RUN_HELP.get(option.name, option.help)
        return options

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Run the named tasks. Returns the exit code; a name without a recipe is an error."""
        from pipeline.commands.tasks import task_names

        named, pos_args = pos_args, task_names(pos_args)
        if opt_values["dry-run"]:
            from pipeline.commands.explain import exit_code, print_explanations
            from pipeline.distributed.choice import check_executor

            check_executor(self.own_values.get(EXECUTOR, "local"))  # a dry run reports the same error as a run

            return exit_code(print_explanations(named, as_json=opt_values["json"]))
        with ExitStack() as stack:
            executor = stack.enter_context(selected_executor(self.own_values))
            opt_values["num_process"] = opt_values["num_process"] or executor.max_parallel
            if (opt_values["quiet"] or opt_values["json"]) and not isinstance(opt_values["outfile"], str):
                opt_values["outfile"] = os.devnull
            if isinstance(opt_values["outfile"], str):
                opt_values["outfile"] = stack.enter_context(_output_file(opt_values["outfile"]))
            standard_output = sys.stdout
            if opt_values["json"]:  # output of plug-ins must not mix with the JSON
                stack.enter_context(redirect_stdout(sys.stderr))
            code = super().execute(opt_values, pos_args)
            if opt_values["json"]:
                from pipeline.terminal.reporter import results_json

                print(json.dumps(results_json, indent=1), file=standard_output)
            return code


@contextmanager
def _output_file(name: str) -> Iterator[Output]:
    try:
        stream = Path(name).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed below
    except OSError as error:
        raise CmdParseError(f"{escape.name(name)} cannot be written: {error.strerror}") from None
    output = Output(stream, escape.name(name))
    try:
        yield output
    finally:
        output.close()
