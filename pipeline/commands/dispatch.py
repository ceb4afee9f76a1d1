"""The command line of this project: which command the words mean, and what becomes of its errors.

The commands are those that pyproject.toml names, and `help`. doit's other commands are about the state it keeps: here
it keeps none. doit's `DoitMain` would read the settings of whatever folder it is called in, offer those commands, and
end with the exit code 3 for a mistake, which here is for work that is pending.
"""

from __future__ import annotations

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
from pipeline.commands.pyproject import in_pyproject
from pipeline.errors import PipelineError, first_line, list_known
from pipeline.project import current_project
from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.system.system_limits import system_limit


class ProjectTasks(NamespaceTaskLoader):  # type: ignore[misc]  # doit has no types
    """Loads the tasks of pipeline.commands.dodo, once the command line is known to be right."""

    def setup(self, opt_values: object) -> None:
        """Called by doit before it asks for tasks."""
        from pipeline.commands import dodo

        self.namespace = vars(dodo)


def run(words: Sequence[str]) -> int:
    """Run a command line, without the program's name. Returns the exit code; errors are on stderr."""
    try:
        return _run(list(words))
    except (PipelineError, StageError, CmdParseError, InvalidDodoFile, InvalidCommand, InvalidTask) as error:
        text = str(error)
    except Exception as error:
        from pipeline.commands.reported import wants_traceback

        if wants_traceback():
            raise
        limit = system_limit(error)
        text = f"unexpected {type(error).__name__}: {first_line(error)}\nFIRMLINE_TRACEBACK=1 shows where"
        text = text if limit is None else "\n".join(filter(None, limit))
    sys.stderr.write(f"ERROR: {escape.message(text)}\n")
    return FAILED


def _run(words: list[str]) -> int:
    commands = command_classes()
    first = words[0] if words else "run"
    if first == "--version":
        _alone(words)
        print(f"firmline {in_pyproject('project')['version']}, doit {'.'.join(map(str, DOIT_VERSION))}")
        return 0
    if first in ("help", "--help", "-h"):
        return _help(words[1:], commands)
    name, rest = _command(words, list(commands))
    if name != "init":
        # Relative paths on the command line start at the project's root.
        os.chdir(current_project().root)
    doit_cmd.reset_vars()
    return int(_made(name, commands).parse_execute(rest) or 0)


def command_classes() -> PluginDict:
    """The class of each command by its name, loaded when it is asked for."""
    named = in_pyproject("tool", "doit", "plugins", "command")
    return PluginDict({name: PluginEntry("COMMAND", name, place) for name, place in named.items()})


def _made(name: str, commands: PluginDict) -> Any:
    return commands.get_plugin(name)(task_loader=ProjectTasks(), config={}, bin_name="doit", cmds=commands)


def _command(words: list[str], known: Sequence[str]) -> tuple[str, list[str]]:
    """The command that a command line names, `run` where it names recipes only, and the words for it."""
    first = words[0] if words else "run"
    if first in known:
        return first, words[1:]
    if first.startswith("-") or "=" in first:
        later = next((word for word in words if word in known), "")
        if later:
            raise PipelineError(f"the command stands first: doit {later} …")
        return "run", words
    from pipeline.plugins.registry import registry_of
    from pipeline.recipes.recipe_arguments import matching_recipes, split_names

    if first and matching_recipes(split_names([first]), current_project(), registry_of(current_project())):
        return "run", words
    raise _unknown(first, known)


def _unknown(word: str, known: Sequence[str]) -> PipelineError:
    names = [*known, "help"]
    message = f"'{escape.name(word)}' is no command{did_you_mean(word, names)}"
    if word in (command.get_name() for command in doit_cmd.DoitMain.DOIT_CMDS):
        message = f"'{word}' is a command of doit that has no use here: the artifact store says what is up to date"
    return PipelineError(message, hint=list_known("commands", names))


def _help(words: list[str], commands: PluginDict) -> int:
    _alone(words)
    if words and words[0] in commands:
        print(_made(words[0], commands).help())
    elif words and words[0] != "help":
        raise _unknown(words[0], list(commands))
    else:
        width = max(map(len, commands))
        print("commands:")
        for name in commands:
            print(f"  doit {name:{width}}  {commands.get_plugin(name).doc_purpose}")
        print("\n`doit help COMMAND` says what a command takes; docs/reference/commands.md has examples.")
        print("`doit NAME` is `doit run NAME`.")
    return 0


def _alone(words: list[str]) -> None:
    if len(words) > 1:
        raise PipelineError(f"'{escape.name(words[1])}' is not expected after {escape.name(words[0])}")
