"""`doit run`: doit's own, with this project's options and words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from doit.cmd_run import Run as DoitRun
from doit.cmdparse import CmdParseError

from pipeline.commands.command import JSON, MOST_JOBS, Common
from pipeline.commands.executing import EXECUTOR, executing
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.process.streams import Output
from stages.messages import escape

_DRY_RUN = "dry_run"
_RUN_HELP = {
    "always": "run all stages anew, also what is up to date",
    "continue": "when a recipe fails, go on with the others [default: %(default)s]",
    "verbosity": "2: errors with their tracebacks",
    "outfile": "write what is shown into a file [default: stdout]",
    "num_process": f"how many stages run side by side, at most {MOST_JOBS} [default: one after the other]",
}


class Run(Common, DoitRun):  # type: ignore[misc]
    """`doit run`."""

    name = "run"
    doc_purpose = "run recipes: from a network to tested firmware"
    doc_usage = (
        "NAME... | recipe=a,b [target=… model=… set=…] [dry_run=1 | executor=tls://…] [-n JOBS] [-a] [-q] "
        "[--no-continue] [--json]"
    )
    doc_description = (
        "docs/reference/commands.md has what NAME may be: a glob, NAME:STAGE, a sub-recipe of a matrix. With dry_run=1 "
        "nothing runs; what would is said as `doit explain` says it, with exit code 3 where that is anything. "
        "executor=dask, or tls://HOST:PORT, runs the stages on other machines (docs/how-to/distributed.md)."
    )
    names = "recipes"
    variables = RECIPE_VARIABLES
    own = (_DRY_RUN, EXECUTOR)
    cmd_options = (
        *DoitRun.cmd_options,
        {
            "name": "quiet",
            "long": "quiet",
            "short": "q",
            "type": bool,
            "default": False,
            "help": "print errors alone",
        },
        JSON,
    )
    offered = ("always", "continue", "verbosity", "outfile", "num_process", "quiet", "json")

    def get_options(self) -> list[Any]:
        """With this project's words about them."""
        options = super().get_options()
        for option in options:
            option.help = _RUN_HELP.get(option.name, option.help)
        return options

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Returns the exit code; a word that names no recipe is an error, also when it is a glob."""
        from pipeline.commands.tasks import check_named

        named, pos_args = pos_args, check_named(pos_args)
        if _is_dry(self.given):
            from pipeline.commands.explain import exit_code, print_explanations
            from pipeline.distributed.choice import check_executor

            check_executor(self.given.get(EXECUTOR, "local"))  # a run would refuse it

            return exit_code(print_explanations(named, as_json=opt_values["json"]))
        with ExitStack() as stack:
            executor = stack.enter_context(executing(self.given))
            opt_values["num_process"] = opt_values["num_process"] or executor.width
            if (opt_values["quiet"] or opt_values["json"]) and not isinstance(opt_values["outfile"], str):
                opt_values["outfile"] = os.devnull
            if isinstance(opt_values["outfile"], str):
                opt_values["outfile"] = stack.enter_context(_output_file(opt_values["outfile"]))
            standard_output = sys.stdout
            if opt_values["json"]:  # what a plug-in prints would be among it
                stack.enter_context(redirect_stdout(sys.stderr))
            code = super().execute(opt_values, pos_args)
            if opt_values["json"]:
                from pipeline.terminal.reporter import ended

                print(json.dumps(ended, indent=1), file=standard_output)
            return code


def _is_dry(given: Mapping[str, str]) -> bool:
    value = given.get(_DRY_RUN, "0")
    if value not in ("0", "1"):
        raise CmdParseError(f"{_DRY_RUN}={escape.name(value)}: should be 0 or 1")
    return value == "1"


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
