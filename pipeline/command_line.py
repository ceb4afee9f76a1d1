"""What all commands of `doit` share here: options anywhere, `--help`, messages about options, quiet ends.

`run` and `list` are doit's own with these; the others are in pipeline.commands, pipeline.calibrate, pipeline.bench.
"""

from __future__ import annotations

import getopt
from typing import Any

from doit.cmd_base import Command as DoitCommand
from doit.cmd_list import List as DoitList
from doit.cmd_run import Run as DoitRun
from doit.cmdparse import CmdParseError

from pipeline.interruption import guarded


class _Common:
    """Goes before one of doit's command classes."""

    def parse_execute(self, arguments: list[str]) -> Any:
        """Called by doit with what follows the command's name, without `name=value`. Returns the exit code."""
        command: Any = self
        parser: Any = command.cmdparser
        if "--help" in arguments or ("-h" in arguments and "h" not in parser.get_short()):
            print(command.help())
            return 0
        ordered = options_first(arguments, parser)
        inherited: Any = super()
        return guarded(lambda: inherited.parse_execute(ordered))


class Command(_Common, DoitCommand):  # type: ignore[misc]  # doit has no types
    """A command of this project."""


class Run(_Common, DoitRun):  # type: ignore[misc]
    """`doit run`."""

    name = "run"

    def execute(self, opt_values: Any, pos_args: list[str]) -> Any:
        """Returns the exit code; a word that names no recipe is an error, also when it is a glob."""
        from pipeline.tasks import check_named

        check_named(pos_args)
        return super().execute(opt_values, pos_args)


class List(_Common, DoitList):  # type: ignore[misc]
    """`doit list`."""

    name = "list"


def options_first(arguments: list[str], parser: Any) -> list[str]:
    """The arguments with options before names, as doit's own parser wants them. Raises doit's CmdParseError."""
    short, long = parser.get_short(), parser.get_long()
    try:
        options, names = getopt.gnu_getopt(arguments, short, long)
    except getopt.GetoptError as error:
        raise CmdParseError(_mistake(error, short, long)) from None
    ordered = []
    for option, value in options:
        found, _ = parser.get_option(option)
        try:
            if found.type is not bool and found.type is not list:
                found.str2type(value)
        except CmdParseError:
            kind = "a whole number" if found.type is int else "a number" if found.type is float else "otherwise"
            raise CmdParseError(f"{option} {value}: should be {kind}") from None
        # doit starts that many threads: below zero none, which then run nothing and report success.
        if found.type is int and int(value) < 0:
            raise CmdParseError(f"{option} {value}: should be 0 or more")
        ordered += [option] if found.type is bool else [option, value]
    return [*ordered, "--", *names]


def _mistake(error: getopt.GetoptError, short: str, long: list[str]) -> str:
    """What is wrong with an option, in the command line's own words."""
    from pipeline.errors import did_you_mean

    name = f"--{error.opt}" if len(error.opt) > 1 else f"-{error.opt}"
    known = ["--" + option.rstrip("=") for option in long] + ["-" + letter for letter in short if letter != ":"]
    if "not recognized" in error.msg:
        guess = did_you_mean(name, known).replace("'", "")
        return f"unknown option {name}{guess}\noptions: {', '.join(known) or '(none)'}"
    if "requires argument" in error.msg:
        return f"{name} needs a value"
    if "must not have an argument" in error.msg:
        return f"{name} takes no value"
    return f"{name}: {error.msg}"
