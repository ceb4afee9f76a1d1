"""`doit run`: doit's own, with this project's options and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from doit.cmd_run import Run as DoitRun
from doit.cmdparse import CmdParseError

from pipeline.commands.command import MOST_JOBS, Common
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.process.streams import Output
from stages.messages import escape

_DRY_RUN = "dry_run"
# The exit code of a dry run that found work.
_PENDING = 3
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
    doc_usage = "NAME... | recipe=a,b [target=… model=… set=…] [dry_run=1] [-n JOBS] [-a] [--no-continue]"
    doc_description = (
        'README.md, "Commands", has what NAME may be: a glob, NAME:STAGE, a sub-recipe of a matrix. With dry_run=1 '
        "nothing runs; what would is said as `doit explain` says it, with exit code 3 where that is anything."
    )
    names = "recipes"
    variables = RECIPE_VARIABLES
    own = (_DRY_RUN,)
    offered = ("always", "continue", "verbosity", "outfile", "num_process")

    def get_options(self) -> list[Any]:
        """With this project's words about them."""
        options = super().get_options()
        for option in options:
            option.help = _RUN_HELP.get(option.name, option.help)
        return options

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Returns the exit code; a word that names no recipe is an error, also when it is a glob."""
        from pipeline.commands.tasks import check_named

        pos_args = check_named(pos_args)
        if _is_dry(self.given):
            from pipeline.commands.explain import print_explanations

            return _PENDING if print_explanations(pos_args) else 0
        if not isinstance(opt_values["outfile"], str):
            return super().execute(opt_values, pos_args)
        with _output_file(opt_values["outfile"]) as stream:
            opt_values["outfile"] = stream
            return super().execute(opt_values, pos_args)


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
