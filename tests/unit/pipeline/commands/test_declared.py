"""Commands load by the names that pyproject.toml gives them, and quietly when interrupted."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from doit.plugin import PluginEntry

from pipeline.commands import declared as plugins
from pipeline.commands.command import Command
from pipeline.commands.list_recipes import List
from pipeline.commands.run import Run
from stages.system.installation import INSTALLATION as ROOT

COMMANDS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["doit"]["plugins"]["command"]

# A signal that comes while a command's module is imported.
_INTERRUPTED = """
import os, signal
from doit.plugin import PluginEntry
from pipeline.commands import declared as plugins
signal.signal(signal.SIGINT, signal.default_int_handler)
plugins.import_module = lambda name: os.kill(os.getpid(), signal.SIGINT)
PluginEntry("COMMAND", "explain", "pipeline.commands.declared:Explain").get()
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_of_its_name(name: str) -> None:
    command = PluginEntry("COMMAND", name, COMMANDS[name]).get()
    assert issubclass(command, (Command, Run, List))
    assert command.name == name


def test_interruption_while_a_command_is_loaded_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted; what is finished is kept\n")


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = plugins.Missing
