"""The command line: choose the command and print its errors.

Commands are listed in pyproject.toml, except `help`. Firmline keeps no state in doit, so doit's other commands are
not offered. doit's `DoitMain` is not used: it reads settings of the current folder, offers those commands, and exits
with 3 for a mistake, which means pending work here.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from doit import doit_cmd
from doit.cmd_base import NamespaceTaskLoader
from doit.cmdparse import CmdParseError
from doit.exceptions import InvalidCommand, InvalidDodoFile, InvalidTask
from doit.plugin import PluginDict, PluginEntry
from doit.version import VERSION as DOIT_VERSION

from pipeline.commands.exit_codes import FAILED
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import PipelineError, first_line, list_known
from pipeline.project import current_project
from stages.base import StageError
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.system.system_limits import system_limit

_REMOVED = ("calibrate", "tune")  # commands of earlier versions


class ProjectTasks(NamespaceTaskLoader):  # type: ignore[misc]  # doit has no types
    """Load the tasks of pipeline.commands.dodo after the command line was checked."""

    def setup(self, opt_values: object) -> None:
        """Import the tasks; doit calls this before it asks for them."""
        from pipeline.commands import dodo

        self.namespace = vars(dodo)


def run(words: Sequence[str]) -> int:
    """Run a command line, given without the program's name.

    Returns the exit code. Prints errors to stderr.
    """
    try:
        return _run(list(words))
    except (PipelineError, StageError, CmdParseError, InvalidDodoFile, InvalidCommand, InvalidTask) as error:
        text = str(error)
    except Exception as error:
        from pipeline.commands.report_errors import wants_traceback

        if wants_traceback():
            raise
        limit = system_limit(error)
        text = f"unexpected {type(error).__name__}: {first_line(error)}\nset FIRMLINE_TRACEBACK=1 to see the traceback"
        text = text if limit is None else "\n".join(filter(None, limit))
    sys.stderr.write(f"ERROR: {escape.message(text)}\n")
    return FAILED


def _run(words: list[str]) -> int:
    commands = command_classes()
    if not words:
        return _overview()
    first = words[0]
    if first == "--version":
        _refuse_extra_words(words)
        print(f"firmline {pyproject_table('project')['version']}, doit {'.'.join(map(str, DOIT_VERSION))}")
        return 0
    if first in ("help", "--help", "-h"):
        return _help(words[1:], commands)
    if first in _REMOVED:
        sys.stderr.write(f"doit {first} is ignored: runs count kernels when they first need them\n")
        return 0
    name, rest = _command(words, list(commands))
    if name != "init":
        # Relative paths on the command line are relative to the project's root.
        os.chdir(current_project().root)
    doit_cmd.reset_vars()
    return int(_new_command(name, commands).parse_execute(rest) or 0)


def command_classes() -> PluginDict:
    """Return the command classes by name. Each is imported on first use."""
    named = pyproject_table("tool", "doit", "plugins", "command")
    return PluginDict({name: PluginEntry("COMMAND", name, place) for name, place in named.items()})


def _new_command(name: str, commands: PluginDict) -> Any:
    return commands.get_plugin(name)(task_loader=ProjectTasks(), config={}, bin_name="doit", cmds=commands)


def _command(words: list[str], known: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command's name and its arguments; `run` if only recipes are named."""
    first = words[0]
    if first in known:
        return first, words[1:]
    if first.startswith("-") or "=" in first:
        later = next((word for word in words if word in known), "")
        if later:
            raise PipelineError(f"the command must come first: doit {later} …")
        return "run", words
    from pipeline.plugins.registry import registry_of
    from pipeline.recipes.recipe_arguments import matching_recipes, split_names

    if first and matching_recipes(split_names([first]), current_project(), registry_of(current_project())):
        return "run", words
    raise _unknown(first, known)


def _unknown(word: str, known: Sequence[str]) -> PipelineError:
    names = [*known, "help"]
    message = f"'{escape.name(word)}' is not a command{did_you_mean(word, names)}"
    if word in (command.get_name() for command in doit_cmd.DoitMain.DOIT_CMDS):
        message = (
            f"'{word}' is a doit command that Firmline does not support: the artifact store decides what is up to date"
        )
    return PipelineError(message, hint=list_known("commands", names))


def _overview() -> int:
    from pipeline.commands.help import overview
    from pipeline.recipes.recipe_files import recipe_names

    project = current_project()
    names = recipe_names(project, nested=True, built_in=project.is_standalone)
    total = len(recipe_names(project, nested=True))
    print(overview(pyproject_table("project")["version"], names, total - len(names)))
    return 0


def _help(words: list[str], commands: PluginDict) -> int:
    _refuse_extra_words(words)
    if words and words[0] in commands:
        print(_new_command(words[0], commands).help())
    elif words and words[0] != "help":
        raise _unknown(words[0], list(commands))
    else:
        from pipeline.commands.help import command_list

        print(command_list(commands.to_dict()))
    return 0


def _refuse_extra_words(words: list[str]) -> None:
    if len(words) > 1:
        raise PipelineError(f"'{escape.name(words[1])}' is not allowed after {escape.name(words[0])}")
