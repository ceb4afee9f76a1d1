"""The command line of this project: which command the words mean, and what becomes of its errors.

The commands are those that pyproject.toml names, and `help`. doit's other commands are about the state it keeps, which
there is none of here: they are refused, each with what does here what they are for.
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
from pipeline.commands.overview import overview
from pipeline.commands.pyproject import in_pyproject
from pipeline.errors import PipelineError, first_line, list_known
from pipeline.project import here
from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.system.system_limits import system_limit

# doit's commands that are none here, and doit's of other versions.
_ELSEWHERE = {
    "auto": "runs nothing by itself; `doit run NAME` runs what changed",
    "clean": "deletes nothing; build/ may be deleted by hand, `doit gc` trims the artifact store",
    "dumpdb": "has no state of doit to show; `doit explain NAME` says what is cached",
    "forget": "has nothing to forget; `doit run -a NAME` runs everything anew, `doit gc` trims the artifact store",
    "ignore": "ignores no task; a recipe's stages need each other",
    "info": "knows less than `doit explain NAME`, which says what is cached, or why it will run",
    "reset-dep": "has no dependencies to reset; `doit explain NAME` says what is cached",
    "strace": "traces nothing; what a stage reads is in the manifest.json of its artifact",
    "tabcompletion": "is doit's own; `doit completion bash` writes a script for a shell",
}


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
    commands = _commands()
    first = words[0] if words else "run"
    if first == "--version":
        _alone(words)
        print(f"firmline {_version()}, doit {'.'.join(map(str, DOIT_VERSION))}")
        return 0
    if first in ("help", "--help", "-h"):
        return _help(words[1:], commands)
    name, rest = _command(words, list(commands))
    if name != "init":
        # Relative paths on the command line start at the project's root.
        os.chdir(here().root)
    doit_cmd.reset_vars()
    return int(_made(name, commands).parse_execute(rest) or 0)


def _commands() -> PluginDict:
    named = in_pyproject("tool", "doit", "plugins", "command")
    return PluginDict({name: PluginEntry("COMMAND", name, place) for name, place in named.items()})


def _made(name: str, commands: PluginDict) -> Any:
    return commands.get_plugin(name)(task_loader=ProjectTasks(), config={}, bin_name="doit", cmds=commands)


def _command(words: list[str], known: Sequence[str]) -> tuple[str, list[str]]:
    """The command that a command line names, `run` where it names recipes only, and the words for it."""
    first = words[0] if words else "run"
    if first in known:
        return first, words[1:]
    if first in _ELSEWHERE:
        raise PipelineError(f"`doit {first}` {_ELSEWHERE[first]}", hint=list_known("commands", [*known, "help"]))
    if first.startswith("-") or "=" in first:
        later = next((word for word in words if word in known), "")
        if later:
            raise PipelineError(f"the command stands first: doit {later} …")
        return "run", words
    from pipeline.plugins.registry import registry_of
    from pipeline.recipes.naming import recipes_named, separated

    if first and recipes_named(separated([first]), here(), registry_of(here())):
        return "run", words
    guess = did_you_mean(first, [*known, "help"])
    message = f"'{escape.name(first)}' is no command{guess}"
    raise PipelineError(message, hint=list_known("commands", [*known, "help"]))


def _help(words: list[str], commands: PluginDict) -> int:
    if not words:
        print(overview({name: commands.get_plugin(name) for name in commands}))
        return 0
    _alone(words)
    if words[0] == "help":
        return _help([], commands)
    if words[0] in commands:
        print(_made(words[0], commands).help())
        return 0
    _command(words, list(commands))
    raise PipelineError(f"'{escape.name(words[0])}' is no command", hint="`doit list` says what each recipe is for")


def _alone(words: list[str]) -> None:
    if len(words) > 1:
        raise PipelineError(f"'{escape.name(words[1])}' is not expected after {escape.name(words[0])}")


def _version() -> str:
    return str(in_pyproject("project")["version"])
