"""Common code of the commands: argument order, `--help`, command line errors.

`run` and `list` extend doit's commands. Each other command has a module or package beside this one.
Arguments and doit options that a command does not support are errors.
"""

import getopt
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from doit import doit_cmd
from doit.cmd_base import Command as DoitCommand
from doit.cmdparse import CmdOption, CmdParseError

from pipeline.commands.arguments import key_of, spellings
from pipeline.commands.report_errors import report_errors
from pipeline.documents.overrides import check_assignments
from pipeline.errors import RecipeError, list_known
from pipeline.process.interruption import interruptible
from stages.support.messages import escape
from stages.support.messages.wording import nearest

# Each parallel job needs some hundred megabytes: model, compiler, simulator.
MOST_JOBS = 64


def command_option(name: str, text: str, kind: type = bool, *, short: str = "") -> dict[str, Any]:
    """Return an option for `cmd_options`: a flag, or an option with a value.

    Values are of type str (default '') or int (None).
    """
    default = None if kind is int else kind()
    return {"name": name, "long": name, "short": short, "type": kind, "default": default, "help": text}


# The option `--json` of all commands that print records.
JSON = command_option("json", "print JSON, for programs")

_words: list[str] = []


def words() -> list[str]:
    """Names and `name=value` arguments of this process's command, without its options."""
    return list(_words)


def variables() -> dict[str, str]:
    """Recipe arguments (`name=value`) of this process's command, as doit keeps them."""
    return dict(doit_cmd._CMDLINE_VARS or {})


class CommandMixin:
    """Base of all commands, placed before one of doit's command classes.

    group            the command's group in `doit help`, see pipeline.commands.help
    examples         command lines after `doit NAME`, with comments; `doit help` shows the first
    names            noun for arguments without `=`, such as `recipes`; '' if the command takes none
    names_shown      these arguments in help
    comma_lists      whether `a,b` means two names
    keys_help        descriptions in help of `NAME` and of keys, if the common ones do not fit
    variables        the supported `name=value` arguments about recipes
    own_variables    further `name=value` arguments of this command; their values are in `own_values`
    offered_options  the supported options of doit's class; None for all
    """

    group: ClassVar[str] = ""
    examples: ClassVar[tuple[tuple[str, str], ...]] = ()
    names: ClassVar[str] = ""
    names_shown: ClassVar[str] = "NAME"
    comma_lists: ClassVar[bool] = True
    keys_help: ClassVar[tuple[tuple[str, str], ...]] = ()
    variables: ClassVar[tuple[str, ...]] = ()
    own_variables: ClassVar[tuple[str, ...]] = ()
    offered_options: ClassVar[tuple[str, ...] | None] = None

    def get_options(self) -> list[Any]:
        """Return doit's options, with unsupported ones hidden from the command line."""
        inherited: Any = super()
        options: list[Any] = inherited.get_options()
        for option in options:
            if self.offered_options is not None and option.name not in self.offered_options:
                # Without its section, help would show a title without options.
                option.short = option.long = option.inverse = option.section = ""
                option.env_var = None
        return options

    def parse_execute(self, arguments: list[str]) -> Any:
        """Parse and run the arguments after the command's name. Returns the exit code."""
        command: Any = self
        parser: Any = command.cmdparser
        if "--help" in arguments or ("-h" in arguments and "h" not in parser.get_short()):
            print(command.help())
            return 0
        ordered = options_first(arguments, parser, (*self.variables, *self.own_variables))
        end = ordered.index("--") + 1
        options, values = parser.parse(ordered[:end])[0], ordered[end:]
        if self.comma_lists:
            from pipeline.recipes.recipe_arguments import split_names

            values = split_names(values)
        self.own_values = self._split_arguments(command.name, values)
        if options.get("verbosity") == 2:
            os.environ["FIRMLINE_TRACEBACK"] = "1"
        inherited: Any = super()
        names = [word for word in values if "=" not in word]
        return interruptible(lambda: inherited.parse_execute([*ordered[:end], *names]))

    def help(self) -> str:
        """Return the text of `doit help COMMAND`."""
        from pipeline.commands.help import command_help

        return command_help(self)

    def _split_arguments(self, name: str, values: Sequence[str]) -> dict[str, str]:
        """Store the names and recipe variables. Returns the command's own variables.

        Raises CmdParseError for unsupported arguments, RecipeError for wrong values.
        """
        for word in values:
            if "=" not in word and not word.strip():
                raise CmdParseError(f"'{escape.name(word)}' is an empty name")
            if "=" not in word and not self.names:
                raise CmdParseError(f"doit {name} takes no '{escape.name(word)}'")
        typed = [word.partition("=")[::2] for word in values if "=" in word]
        known = (*self.variables, *self.own_variables)
        for variable, _ in typed:
            if variable not in known:
                options = [option.long for option in self.get_options() if option.type is not bool]
                message = f"doit {name} takes no '{escape.name(variable)}='{_suggestion(variable, options, known)}"
                raise CmdParseError("\n".join([message, *([list_known("arguments", known)] if known else [])]))
        check_assignments(typed, known)
        for variable, value in typed:
            if variable not in self.own_variables:
                doit_cmd.set_var(variable, value)
        _words[:] = [word for word in values if word.partition("=")[0] not in self.own_variables]
        return {variable: value for variable, value in typed if variable in self.own_variables}


def selected_names(named: Sequence[str], values: Mapping[str, str], *keys: str) -> list[str]:
    """Return `named`, and the names in the first given value of `keys`, such as `target=b,c`."""
    text = next((values[key] for key in keys if key in values), "")
    return [*named, *(name.strip() for name in text.split(",") if name.strip())]


def named_recipes(command: str, named: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the recipes of names and `recipe=`, and the other variables.

    Raises RecipeError if there is none.
    """
    values = variables()
    names = selected_names(named, values, "recipe")
    values.pop("recipe", None)
    if not names:
        raise RecipeError(f"no recipe is named: use `doit {command} NAME`")
    return names, values


def single_recipe(command: str, values: dict[str, str], named: Sequence[str]) -> str:
    """Return the name of the only recipe, taken from a name or from `recipe=`.

    Removes `recipe` from `values`. Raises RecipeError if there is not exactly one.
    """
    names = [name.strip() for name in (*named, *values.pop("recipe", "").split(",")) if name.strip()]
    if len(names) != 1:
        problem = "no recipe is named:" if not names else f"one recipe is needed, got {len(names)}:"
        raise RecipeError(f"{problem} use `doit {command} NAME`")
    return names[0]


class Command(CommandMixin, DoitCommand):  # type: ignore[misc]  # doit has no types
    """Base of the commands that extend none of doit's."""

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Run the command and print its errors. Returns the exit code."""
        return report_errors(lambda: self._perform(pos_args, opt_values))

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        """Do the command's work for names and values of options.

        Returns the exit code. Raises PipelineError.
        """
        raise NotImplementedError


def options_first(arguments: Sequence[str], parser: Any, variables: Sequence[str] = ()) -> list[str]:
    """Return the arguments as doit's parser needs them: options, `--`, names and `name=value`.

    doit's parser stops at the first name: it would read `doit run NAME -a` as a recipe called `-a`. Its errors show
    Python classes and all options. `--target x` and `targets=x` become `target=x` if `target` is among the variables.
    `days=7` and `check=1` become `--days 7` and `--check` if these are options. Raises CmdParseError.
    """
    parsed, words = _parsed(arguments, parser, variables)
    options, values = [], []
    for typed, value in parsed:
        option, _ = parser.get_option(typed)
        if option is None:
            values.append(f"{key_of(typed[2:], variables)}={value}")
            continue
        if option.type is not bool:
            _check_value(typed, value, option)
        options += [typed] if option.type is bool else [typed, value]
    known = {option.long: option for option in parser.options if option.long}
    for word in words:
        name, equals, value = word.partition("=")
        key, long = key_of(name, variables) if equals else "", name.replace("_", "-")
        if key or not equals or long not in known:
            values.append(f"{key}={value}" if key else word)
        elif known[long].type is not bool:
            _check_value(f"{name}=", value, known[long])
            options += [f"--{long}", value]
        elif value not in ("0", "1"):
            raise CmdParseError(f"{name}={escape.name(value)}: expected 0 or 1")
        elif value == "1":
            options.append(f"--{long}")
    return [*options, "--", *values]


def _parsed(arguments: Sequence[str], parser: Any, variables: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return options with values, and the other words. Raises CmdParseError."""
    short, long = parser.get_short(), parser.get_long()
    try:
        return getopt.gnu_getopt(list(arguments), short, long)
    except getopt.GetoptError as error:
        first = error
    try:
        return getopt.gnu_getopt(list(arguments), short, [*long, *(f"{name}=" for name in spellings(variables))])
    except getopt.GetoptError as error:
        if key := key_of(error.opt, variables):
            raise CmdParseError(f"{key}= is empty") from None
        raise CmdParseError(_option_error(first, parser, variables)) from None


def _check_value(typed: str, value: str, option: CmdOption) -> None:
    """Raise CmdParseError if an option's value has the wrong form."""
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
        raise CmdParseError(f"{typed if typed[-1] == '=' else f'{typed} '}{escape.name(value)}: expected {expected}")


def _option_error(error: getopt.GetoptError, parser: Any, variables: Sequence[str]) -> str:
    """Describe what is wrong with an option. `variables` are typed as `name=value`."""
    typed = f"--{error.opt}" if len(error.opt) > 1 else f"-{error.opt}"
    option, _ = parser.get_option(typed)
    if option is None:
        long = [name.rstrip("=") for name in parser.get_long()]
        known = [*(f"--{name}" for name in long), *(f"-{letter}" for letter in parser.get_short() if letter != ":")]
        guess = _suggestion(error.opt, long, variables)
        return f"unknown option {escape.name(typed)}{guess}\noptions: {', '.join(known) or '(none)'}"
    if "requires" in error.msg:
        return f"{typed} needs a value: {option.help}"
    return f"{typed} takes no value"


def _suggestion(typed_word: str, options: Sequence[str], variables: Sequence[str]) -> str:
    """Return `; did you mean --targets?` for the most similar option or variable, else ''."""
    spellings = {
        **{name.replace("-", "_"): f"--{name}" for name in options},
        **{name: f"{name}=" for name in variables},
    }
    near = nearest(typed_word.replace("-", "_"), spellings)
    return f"; did you mean {spellings[near]}?" if near else ""
