"""`doit doctor`: what this machine has of what the targets need, whether it works, and how to get what lacks."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.commands.catalogue.listing import Record, in_columns
from pipeline.commands.command import JSON, Command
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.pyproject import in_pyproject
from pipeline.commands.reported import reported
from pipeline.errors import ToolError
from pipeline.keys.package_groups import install_command, install_group
from pipeline.runs.workspace import Workspace
from stages.base import StageError, Tool
from stages.messages import escape

if TYPE_CHECKING:
    from stages.targets.spec import Target

# Groups of pyproject.toml that only tests need, and the one of a simulator, which is among the tools.
_SHOWN_ELSEWHERE = ("docs", "browser", "servers", "riscv")
_OF_RECIPES = ("ptq", "onnx")
# Programs that bootstrap installs with the group hardware.
_DEBUGGERS = ("gdb-multiarch", "openocd")
_TURNS = 1000
# What is counted of a loop twice as long is more by a whole number of instructions a turn, of any instruction set.
_PROGRAM = f"""\
#include "bench.h"
#include <stdio.h>
static volatile int turns;
__attribute__((noinline)) static void loop(void) {{ for (int i = turns; i > 0; i--) __asm__ volatile("nop"); }}
int main(void)
{{
    turns = {_TURNS};
    BENCH("short", loop());
    turns = {2 * _TURNS};
    BENCH("long", loop());
    printf("works\\n");
    return 0;
}}
"""


class Doctor(Command):
    """`doit doctor`."""

    name = "doctor"
    names = "targets"
    doc_purpose = "look at this machine: tools, versions, whether simulators count, what to install"
    doc_usage = "[TARGET...] [--install] [--json]"
    doc_description = (
        "For all cores, or those of the targets named. Each simulator runs a program of known length. "
        "Exit code 3 where something is missing or fails."
    )
    cmd_options = (
        {
            "name": "install",
            "long": "install",
            "type": bool,
            "default": False,
            "help": "first install what is missing, in a clone: Debian packages and Spike",
        },
        JSON,
    )

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print what was found. Returns the exit code."""
        return reported(lambda: self._look(opt_values, pos_args))

    def _look(self, options: Mapping[str, Any], named: Sequence[str]) -> int:
        with Workspace(install=install_group if options["install"] else None) as workspace:
            targets = targets_of(workspace, named)
            install_tools(workspace, targets)
            tools = _tools(workspace, targets)
            tests = [_self_test(target, tools) for target in targets]
            optional = _optional()
        if options["json"]:
            print(json.dumps({"tools": tools, "optional": optional, "self_tests": tests}, indent=1))
        else:
            for line in _lines(tools, optional, tests):
                print(line)
        return PENDING if any(one["problem"] for one in (*tools, *tests)) else 0


def targets_of(workspace: Workspace, named: Sequence[str]) -> list[Target]:
    """One target for each core: the core by itself."""
    from pipeline.recipes.targets import load_targets, unknown_target_error

    known = load_targets(workspace.project)
    for name in named:
        if name not in known:
            raise unknown_target_error(name, known)
    cores = dict.fromkeys(known[name].core for name in named or known)
    return [known[core] for core in cores]


def _tools(workspace: Workspace, targets: Sequence[Target]) -> list[dict[str, Any]]:
    """What the stages of the usual chain need on the targets: each tool once, with the cores that need it."""
    found: dict[str, dict[str, Any]] = {}
    for target in targets:
        for tool in _tools_of(workspace, target):
            record = _identified(workspace, tool)
            cores = found.setdefault(json.dumps(record), {**record, "cores": []})["cores"]
            if target.core not in cores:
                cores.append(target.core)
    return list(found.values())


def install_tools(workspace: Workspace, targets: Sequence[Target]) -> None:
    """Install the Debian packages of programs that the targets lack, if the workspace may."""
    workspace.planner.tools.install_missing(tool for target in targets for tool in _tools_of(workspace, target))


def _tools_of(workspace: Workspace, target: Target) -> list[Tool]:
    """What the stages of the usual chain need on a target."""
    stages = [workspace.registry[kind] for kind in workspace.registry.chain]
    tools = [tool for stage in stages for tool in stage.tools(stage.config(), target)]
    return [tool for tool in tools if tool.group not in _OF_RECIPES]


def _optional() -> list[dict[str, Any]]:
    """Packages that only some recipes, stores or executors need: those are installed when one first does."""
    from importlib import metadata

    found = []
    for group, packages in in_pyproject("project", "optional-dependencies").items():
        for package in (re.split(r"[<>=~!; ]", one)[0] for one in packages if group not in _SHOWN_ELSEWHERE):
            try:
                version = metadata.version(package)
            except metadata.PackageNotFoundError:
                version = ""
            found.append({"name": package, "version": version, "group": group, "install": install_command(group)})
    for program in _DEBUGGERS:
        version = "on PATH" if shutil.which(program) else ""
        command = f"apt-get install {program}"
        found.append({"name": program, "version": version, "group": "hardware", "install": command})
    return found


def _identified(workspace: Workspace, tool: Tool) -> dict[str, Any]:
    record: dict[str, Any] = {"name": tool.name, "command": tool.command or tool.package, "minimum": tool.minimum}
    try:
        identity = workspace.planner.tools.identify(tool)
    except ToolError as error:
        return {**record, "version": "", "path": "", "problem": error.message, "install": error.hint}
    return {**record, "version": identity.version, "path": identity.path, "problem": "", "install": ""}


def _self_test(target: Target, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether a program of known length compiles, runs and is counted right."""
    lacks = [one["name"] for one in tools if one["problem"] and target.core in one["cores"]]
    problem = f"needs {', '.join(lacks)}" if lacks else _problem(target)
    simulator = target.simulator.command or target.simulator.kind
    return {"core": target.core, "simulator": simulator, "counts": target.counter != "none", "problem": problem}


def _problem(target: Target) -> str:
    from stages.simulators.bench import compile_and_run_c

    try:
        run = compile_and_run_c(target, [], _PROGRAM, timeout=60)
    except StageError as error:
        return escape.line(str(error))
    if "works" not in run.stdout:
        return "its output is lost"
    if target.counter == "none":
        return ""
    short, long = (run.counts.get(name, 0) for name in ("short", "long"))
    per_turn, rest = divmod(long - short, _TURNS)
    return "" if per_turn >= 2 and not rest else f"it counts {short:,} and {long:,} instructions of loops 1 : 2"


def _lines(
    tools: Sequence[Mapping[str, Any]], optional: Sequence[Record], tests: Sequence[Mapping[str, Any]]
) -> list[str]:
    rows = [
        {
            **one,
            "version": one["version"] or "missing",
            "needed by": "all" if len(one["cores"]) == len(tests) else one["cores"],
        }
        for one in tools
    ]
    lines = in_columns(rows, ("name", "version", "minimum", "path", "needed by"))
    lines.append("")
    extras = [
        {**one, "version": one["version"] or f"not installed; when a run needs it, or {one['install']}"}
        for one in optional
    ]
    lines += [*in_columns(extras, ("name", "group", "version")), ""]
    runs = [{**one, "self-test": one["problem"] or ("counts right" if one["counts"] else "works")} for one in tests]
    lines += in_columns(runs, ("core", "simulator", "self-test"))
    problems = {
        f"{one['problem']}{chr(10) if one['install'] else ''}{one['install']}" for one in tools if one["problem"]
    }
    for problem in sorted(problems):
        lines += ["", *escape.message(problem).splitlines()]
    return lines
