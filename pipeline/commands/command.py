"""What all commands of `doit` share here: options anywhere, `--help`, messages about what is typed, quiet ends.

`run` and `list` are doit's own with these; the others have a module or package each, beside this one.
What a command does not take, an option of doit's own too, is refused: nothing that is typed is ignored.
"""

from __future__ import annotations

import getopt
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from doit import doit_cmd
from doit.cmd_base import Command as DoitCommand
from doit.cmdparse import CmdOption, CmdParseError

from pipeline.documents.overrides import check_assignments
from pipeline.errors import RecipeError, list_known
from pipeline.process.interruption import guarded
from stages.messages import escape
from stages.messages.wording import did_you_mean, nearest

# Each that runs side by side holds a network, its compiler and its simulator: some hundred megabytes.
MOST_JOBS = 64

# doit's options that change nothing here, or what they must not.
_ELSEWHERE = {
    "--auto-delayed-regex": "no task is made late",
    "--backend": "doit keeps no state here; FIRMLINE_STORE moves the artifact store",
    "--check_file_uptodate": "the artifact store says what is up to date, by digests",
    "--db-file": "doit keeps no state here; FIRMLINE_STORE moves the artifact store",
    "--deps": "stages depend on artifacts; `doit explain NAME` shows them",
    "--dir": "paths start at the project's root",
    "--failure-verbosity": "log.txt has what a stage said; -v 2 shows tracebacks",
    "--file": "the tasks are those of the recipes",
    "--parallel-type": "recipes run in threads",
    "--pdb": "-v 2 shows tracebacks",
    "--private": "recipes with `abstract: true` are only there to be extended",
    "--reporter": "there is one reporter; report.json and matrix.json are for programs",
    "--seek-file": "the project is found from the current folder upwards",
    "--single": "`doit run NAME:STAGE` runs one stage and what it needs",
    "--status": "`doit explain NAME` says what is cached",
    "--template": "`doit list -q` prints names only; `doit matrix-json` is for programs",
}
_SHORT = {"-f": "--file", "-d": "--dir", "-k": "--seek-file", "-P": "--parallel-type", "-r": "--reporter"}
_SHORT_OF = {"run": {**_SHORT, "-s": "--single"}, "list": {**_SHORT, "-s": "--status", "-p": "--private"}}

# The option of every command that prints records.
JSON = {
    "name": "json",
    "long": "json",
    "short": "",
    "type": bool,
    "default": False,
    "help": "print JSON, for programs",
}

_words: list[str] = []


def words() -> list[str]:
    """The names and `name=value` arguments that the command of this process was given, without its options."""
    return list(_words)


class Common:
    """Goes before one of doit's command classes.

    names        what words without `=` name, '' when the command takes none
    variables    the `name=value` arguments that it takes, those about recipes
    own          those that it takes beside them, for itself: in `given` when it runs
    offered      of the options that doit's class has, those that are taken here; None for all
    """

    names: ClassVar[str] = ""
    variables: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[tuple[str, ...]] = ()
    offered: ClassVar[tuple[str, ...] | None] = None

    def get_options(self) -> list[Any]:
        """As doit's, with only what is offered on the command line."""
        inherited: Any = super()
        options: list[Any] = inherited.get_options()
        for option in options:
            if self.offered is not None and option.name not in self.offered:
                option.short = option.long = option.inverse = ""
                option.env_var = None
        return options

    def parse_execute(self, arguments: list[str]) -> Any:
        """Called with what follows the command's name. Returns the exit code."""
        command: Any = self
        parser: Any = command.cmdparser
        if "--help" in arguments or ("-h" in arguments and "h" not in parser.get_short()):
            print(command.help())
            return 0
        options, given = _parsed(
            arguments, parser, command.name, (*self.variables, *self.own), usage=command.doc_usage or ""
        )
        if self.names in ("recipe", "recipes"):
            from pipeline.recipes.naming import separated

            given = separated(given)
        self.given = self._take(command.name, given)
        if any(one.name == "verbosity" and int(one.value) == 2 for one in options):
            os.environ["FIRMLINE_TRACEBACK"] = "1"
        ordered = [word for one in options for word in one.words()]
        ordered += ["--", *(word for word in given if "=" not in word)]
        inherited: Any = super()
        return guarded(lambda: inherited.parse_execute(ordered))

    def _take(self, name: str, given: Sequence[str]) -> dict[str, str]:
        """Keep the words; refuse those that the command does not take. Raises CmdParseError, RecipeError.

        Returns what is the command's own.
        """
        for word in given:
            if "=" not in word and not word.strip():
                raise CmdParseError(f"'{escape.name(word)}' names nothing")
            if "=" not in word and not self.names:
                raise CmdParseError(f"doit {name} takes no '{escape.name(word)}'{self._instead(word)}")
        typed = [word.partition("=")[::2] for word in given if "=" in word]
        known = (*self.variables, *self.own)
        for variable, _ in typed:
            guess = self._option_near(variable, known)
            if not known:
                raise CmdParseError(f"doit {name} takes no '{escape.name(variable)}='{guess}")
            if guess:
                message = f"unknown argument '{escape.name(variable)}='{guess}"
                raise CmdParseError(f"{message}\n{list_known('arguments', known)}")
        check_assignments(typed, known)
        for variable, value in typed:
            if variable not in self.own:
                doit_cmd.set_var(variable, value)
        _words[:] = [word for word in given if word.partition("=")[0] not in self.own]
        return {variable: value for variable, value in typed if variable in self.own}

    def _option_near(self, variable: str, known: Sequence[str]) -> str:
        """`; did you mean --targets?` for a `name=` that is none of those known, where an option is nearer; else ''."""
        options = [one.long.replace("-", "_") for one in self.get_options() if one.long and one.type is not bool]
        near = "" if variable in known else nearest(variable, [*known, *options])
        return "" if near in ("", *known) else f"; did you mean --{near.replace('_', '-')}?"

    def _instead(self, word: str) -> str:
        for variable in ("recipe", "recipes"):
            if variable in self.variables:
                return f"; recipes are named with {variable}={escape.name(word)}"
        return ""


def the_recipe(command: str, given: dict[str, str], named: Sequence[str]) -> str:
    """The one recipe of a command that takes one, named by a word or by `recipe=`, which leaves `given`.

    Raises RecipeError.
    """
    names = [name.strip() for name in (*named, *given.pop("recipe", "").split(",")) if name.strip()]
    if len(names) != 1:
        what = "which recipe?" if not names else f"one recipe is needed, got {len(names)}:"
        raise RecipeError(f"{what} `doit {command} NAME`")
    return names[0]


class Command(Common, DoitCommand):  # type: ignore[misc]  # doit has no types
    """A command of this project."""


@dataclass(frozen=True)
class _Typed:
    """An option as it was typed, its name in doit, and its value unless it is a switch."""

    typed: str
    name: str
    value: str
    switch: bool

    def words(self) -> list[str]:
        return [self.typed] if self.switch else [self.typed, self.value]


def _parsed(
    arguments: Sequence[str], parser: Any, command: str = "", variables: Sequence[str] = (), usage: str = ""
) -> tuple[list[_Typed], list[str]]:
    """The options, and the words between them. Raises doit's CmdParseError."""
    short, long = parser.get_short(), parser.get_long()
    try:
        found, given = getopt.gnu_getopt(list(arguments), short, long)
        _check_whole([name for name, _ in found], arguments)
    except getopt.GetoptError as error:
        if "requires argument" in error.msg:
            raise CmdParseError(_lacks_value(error.opt, parser, usage)) from None
        raise CmdParseError(_mistake(error, short, long, command, variables)) from None
    options: list[_Typed] = []
    seen: dict[str, str] = {}
    for typed, value in found:
        option, inverse = parser.get_option(typed)
        switch = option.type is bool
        if not switch:
            _check_value(typed, value, option)
        meant = str(inverse) if switch else value
        if seen.setdefault(option.name, meant) != meant:
            both = f"--{option.long} and --{option.inverse} exclude each other"
            raise CmdParseError(both if switch else f"{typed} is given twice")
        options.append(_Typed(typed, option.name, value, switch))
    return options, given


def _check_whole(found: Sequence[str], arguments: Sequence[str]) -> None:
    """Raises GetoptError for the beginning of a name, which getopt takes for the option."""
    typed = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    for name in found:
        if name.startswith("--") and name not in typed:
            short = next(word for word in typed if name.startswith(word) and word != "--")
            raise getopt.GetoptError(f"option {short} not recognized", short[2:])


def _lacks_value(name: str, parser: Any, usage: str) -> str:
    """What is said of an option whose value is missing, which is called as in the usage, or told by its help."""
    typed = f"--{name}" if len(name) > 1 else f"-{name}"
    option, _ = parser.get_option(typed)
    called = re.search(rf"{re.escape(typed)} ([^\s\]|]+)", usage)
    what = f", {called[1]}" if called else ""
    return f"{typed} needs a value{what}" + (f": {option.help}" if option.help else "")


def options_first(arguments: Sequence[str], parser: Any) -> list[str]:
    """The arguments with options before names, as doit's own parser wants them. Raises doit's CmdParseError."""
    options, given = _parsed(arguments, parser)
    return [*(word for one in options for word in one.words()), "--", *given]


def _check_value(typed: str, value: str, option: CmdOption) -> None:
    shown = f"{typed} {escape.name(value)}"
    if option.choices and value not in option.choices:
        raise CmdParseError(f"{shown}: should be {' or '.join(option.choices)}")
    if option.type is str and not value.strip():
        raise CmdParseError(f"{typed} needs a value, is empty")
    if option.type is not int:
        return
    if not re.fullmatch(r"[+-]?[0-9]+", value):
        raise CmdParseError(f"{shown}: should be a whole number")
    # Far outside of every limit, and too long a number for `int`, is the same.
    number = int(value[:20])
    if number < 0:
        raise CmdParseError(f"{shown}: should be 0 or more")
    if option.name == "verbosity" and number > 2:
        raise CmdParseError(f"{shown}: should be 0, 1 or 2")
    if option.name != "verbosity" and number > MOST_JOBS:
        reason = "each that runs side by side takes some hundred megabytes"
        raise CmdParseError(f"{shown}: should be at most {MOST_JOBS}; {reason}")


def _mistake(error: getopt.GetoptError, short: str, long: list[str], command: str, variables: Sequence[str]) -> str:
    """What is wrong with an option, in the command line's own words. `variables` are typed as `name=value`."""
    name = f"--{error.opt}" if len(error.opt) > 1 else f"-{error.opt}"
    shown = escape.name(name)
    known = ["--" + option.rstrip("=") for option in long] + ["-" + letter for letter in short if letter != ":"]
    if "not recognized" in error.msg:
        full = _SHORT_OF.get(command, {}).get(name, name)
        if command in _SHORT_OF and full in _ELSEWHERE:
            return f"{shown} is no option here: {_ELSEWHERE[full]}\noptions: {', '.join(known)}"
        guess = did_you_mean(name, known).replace("'", "")
        words = [option.lstrip("-").replace("-", "_") for option in known]
        if (meant := nearest(name.lstrip("-").replace("-", "_"), [*variables, *words])) in variables:
            guess = f"; it is written {meant}=…"
        return f"unknown option {shown}{guess}\noptions: {', '.join(known) or '(none)'}"
    if "must not have an argument" in error.msg:
        return f"{shown} takes no value"
    return f"{shown}: {error.msg}"
