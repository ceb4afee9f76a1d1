"""What all commands of `doit` share here: options before or after names, `--help`, messages about what is typed.

`run` and `list` are doit's own with these; the others have a module or package each, beside this one.
What a command does not take, an option of doit's own too, is refused: nothing that is typed is ignored.
"""

from __future__ import annotations

import getopt
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from doit import doit_cmd
from doit.cmd_base import Command as DoitCommand
from doit.cmdparse import CmdOption, CmdParseError

from pipeline.documents.overrides import check_assignments
from pipeline.errors import RecipeError, list_known
from pipeline.process.interruption import guarded
from stages.messages import escape
from stages.messages.wording import nearest

# Each that runs side by side holds a network, its compiler and its simulator: some hundred megabytes.
MOST_JOBS = 64

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


def variables() -> dict[str, str]:
    """The `name=value` arguments about recipes that the command of this process was given, where doit keeps them."""
    return dict(doit_cmd._CMDLINE_VARS or {})


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
                # Without its section, of which help would show the title alone.
                option.short = option.long = option.inverse = option.section = ""
                option.env_var = None
        return options

    def parse_execute(self, arguments: list[str]) -> Any:
        """Called with what follows the command's name. Returns the exit code."""
        command: Any = self
        parser: Any = command.cmdparser
        if "--help" in arguments or ("-h" in arguments and "h" not in parser.get_short()):
            print(command.help())
            return 0
        ordered = options_first(arguments, parser, (*self.variables, *self.own))
        end = ordered.index("--") + 1
        options, given = parser.parse(ordered[:end])[0], ordered[end:]
        if self.names in ("recipe", "recipes"):
            from pipeline.recipes.recipe_arguments import split_names

            given = split_names(given)
        self.given = self._take(command.name, given)
        if options.get("verbosity") == 2:
            os.environ["FIRMLINE_TRACEBACK"] = "1"
        inherited: Any = super()
        names = [word for word in given if "=" not in word]
        return guarded(lambda: inherited.parse_execute([*ordered[:end], *names]))

    def _take(self, name: str, given: Sequence[str]) -> dict[str, str]:
        """Keep the words; refuse those that the command does not take. Raises CmdParseError, RecipeError.

        Returns what is the command's own.
        """
        for word in given:
            if "=" not in word and not word.strip():
                raise CmdParseError(f"'{escape.name(word)}' names nothing")
            if "=" not in word and not self.names:
                raise CmdParseError(f"doit {name} takes no '{escape.name(word)}'")
        typed = [word.partition("=")[::2] for word in given if "=" in word]
        known = (*self.variables, *self.own)
        for variable, _ in typed:
            if variable not in known:
                options = [option.long for option in self.get_options() if option.type is not bool]
                message = f"doit {name} takes no '{escape.name(variable)}='{_meant(variable, options, known)}"
                raise CmdParseError("\n".join([message, *([list_known("arguments", known)] if known else [])]))
        check_assignments(typed, known)
        for variable, value in typed:
            if variable not in self.own:
                doit_cmd.set_var(variable, value)
        _words[:] = [word for word in given if word.partition("=")[0] not in self.own]
        return {variable: value for variable, value in typed if variable in self.own}


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


def options_first(arguments: Sequence[str], parser: Any, variables: Sequence[str] = ()) -> list[str]:
    """The arguments as doit's parser reads them: options, `--`, then the words between them. Raises CmdParseError.

    doit's own stops at the first word, so that `doit run NAME -a` would run a recipe called `-a`; and its errors show
    Python's classes and the whole list of options.
    """
    try:
        found, given = getopt.gnu_getopt(list(arguments), parser.get_short(), parser.get_long())
    except getopt.GetoptError as error:
        raise CmdParseError(_mistake(error, parser, variables)) from None
    options = []
    for typed, value in found:
        option, _ = parser.get_option(typed)
        if option.type is not bool:
            _check_value(typed, value, option)
        options += [typed] if option.type is bool else [typed, value]
    return [*options, "--", *given]


def _check_value(typed: str, value: str, option: CmdOption) -> None:
    expected = ""
    if option.choices and value not in option.choices:
        expected = " or ".join(option.choices)
    elif option.type is int:
        most = 2 if option.name == "verbosity" else MOST_JOBS
        if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) <= most):
            expected = f"a number from 0 to {most}"
    elif not value.strip():
        raise CmdParseError(f"{typed} needs a value: {option.help}")
    if expected:
        raise CmdParseError(f"{typed} {escape.name(value)}: should be {expected}")


def _mistake(error: getopt.GetoptError, parser: Any, variables: Sequence[str]) -> str:
    """What is wrong with an option. `variables` are typed as `name=value`."""
    typed = f"--{error.opt}" if len(error.opt) > 1 else f"-{error.opt}"
    option, _ = parser.get_option(typed)
    if option is None:
        long = [name.rstrip("=") for name in parser.get_long()]
        known = [*(f"--{name}" for name in long), *(f"-{letter}" for letter in parser.get_short() if letter != ":")]
        guess = _meant(error.opt, long, variables)
        return f"unknown option {escape.name(typed)}{guess}\noptions: {', '.join(known) or '(none)'}"
    if "requires" in error.msg:
        return f"{typed} needs a value: {option.help}"
    return f"{typed} takes no value"


def _meant(word: str, options: Sequence[str], variables: Sequence[str]) -> str:
    """`; did you mean --targets?`: the option or the `name=` that is nearest, as it is typed; '' where none is near."""
    typed = {**{name.replace("-", "_"): f"--{name}" for name in options}, **{name: f"{name}=" for name in variables}}
    near = nearest(word.replace("-", "_"), typed)
    return f"; did you mean {typed[near]}?" if near else ""
