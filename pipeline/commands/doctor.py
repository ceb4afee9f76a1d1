"""`doit doctor`: check the tools that the targets need, and how to install missing ones."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from pipeline.commands.catalogue.listing import Record, in_columns
from pipeline.commands.command import JSON, Command, command_option, selected_names, variables
from pipeline.commands.exit_codes import PENDING
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import ToolError
from pipeline.keys.package_groups import install_command, install_group
from pipeline.keys.tools import default_tools
from pipeline.runs.workspace import Workspace
from stages.backends.targets.spec import Target
from stages.base import StageError, Tool
from stages.support.messages import escape

# Groups of pyproject.toml that only tests need, and the simulator's group, which is listed with the tools.
_SHOWN_ELSEWHERE = ("riscv",)
_OF_RECIPES = ("ptq", "onnx", "audio")
# Programs that bootstrap installs with the group hardware.
_DEBUGGERS = ("gdb-multiarch", "openocd")
_TURNS = 1000
# On any instruction set, twice the turns add a whole number of instructions per turn.
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
    group = "maintain"
    examples = (("", "all cores"), ("cortex-m4 --install", "one core, and install what it needs"))
    keys_help = (("target", "the same as NAME"),)
    names = "targets"
    variables = ("target", "board")
    doc_purpose = "check this machine: tools, versions, simulators, what to install"
    doc_usage = "[NAME...] [--install] [--json]"
    doc_description = (
        "Checks all cores, or those of the named targets. Each simulator runs a program of known length. "
        "Exits with 3 if something is missing or fails."
    )
    cmd_options = (command_option("install", "in a clone, first install missing Debian packages and Spike"), JSON)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        with Workspace(install=install_group if options["install"] else None) as workspace:
            targets = targets_of(workspace, selected_names(named, variables(), "target", "board"))
            install_tools(workspace, targets)
            tools = _tools(workspace, targets)
            tests = [_self_test(target, tools) for target in targets]
            optional = _optional()
        if options["json"]:
            print(json.dumps({"tools": tools, "optional": optional, "self_tests": tests}, indent=1))
        else:
            for line in _lines(tools, optional, tests):
                print(line)
        return PENDING if any(record["problem"] for record in (*tools, *tests)) else 0


def targets_of(workspace: Workspace, named: Sequence[str]) -> list[Target]:
    """Return one target per core, without boards. Raises RecipeError for an unknown name."""
    from pipeline.recipes.targets import load_targets, unknown_target_error

    known = load_targets(workspace.project)
    for name in named:
        if name not in known:
            raise unknown_target_error(name, known)
    cores = dict.fromkeys(known[name].core for name in named or known)
    return [known[core] for core in cores]


def _tools(workspace: Workspace, targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Return a record per tool of the default stages, with the cores that need it."""
    records: dict[str, dict[str, Any]] = {}
    for target in targets:
        for tool in _tools_of(workspace, target):
            record = _identified(workspace, tool)
            cores = records.setdefault(json.dumps(record), {**record, "cores": []})["cores"]
            if target.core not in cores:
                cores.append(target.core)
    return list(records.values())


def install_tools(workspace: Workspace, targets: Sequence[Target]) -> None:
    """Install Debian packages of missing tools, if the workspace allows it."""
    workspace.planner.tools.install_missing(tool for target in targets for tool in _tools_of(workspace, target))


def _tools_of(workspace: Workspace, target: Target) -> list[Tool]:
    """Return the tools that the default stages needs on a target."""
    stages = [workspace.registry[kind] for kind in workspace.registry.default_stages]
    tools = [tool for stage in stages for tool in default_tools(stage, target)]
    return [tool for tool in tools if tool.group not in _OF_RECIPES]


def _optional() -> list[dict[str, Any]]:
    """Return records of optional packages, which are installed on first use."""
    records = []
    for group, packages in pyproject_table("project", "optional-dependencies").items():
        for package in (
            re.split(r"[<>=~!; ]", requirement)[0] for requirement in packages if group not in _SHOWN_ELSEWHERE
        ):
            try:
                version = metadata.version(package)
            except metadata.PackageNotFoundError:
                version = ""
            records.append({"name": package, "version": version, "group": group, "install": install_command(group)})
    for program in _DEBUGGERS:
        version = "on PATH" if shutil.which(program) else ""
        install = f"apt-get install {program}"
        records.append({"name": program, "version": version, "group": "hardware", "install": install})
    return records


def _identified(workspace: Workspace, tool: Tool) -> dict[str, Any]:
    """Return a tool's record: version and path, or the problem and how to install it."""
    record: dict[str, Any] = {"name": tool.name, "command": tool.command or tool.package, "minimum": tool.minimum}
    try:
        identity = workspace.planner.tools.identify(tool)
    except ToolError as error:
        return {**record, "version": "", "path": "", "problem": error.message, "install": error.hint}
    return {**record, "version": identity.version, "path": identity.path, "problem": "", "install": ""}


def _self_test(target: Target, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a record: does a program of known length compile, run, and count correctly?"""
    missing = [tool["name"] for tool in tools if tool["problem"] and target.core in tool["cores"]]
    problem = f"needs {', '.join(missing)}" if missing else _problem(target)
    simulator = target.simulator.command or target.simulator.kind
    return {"core": target.core, "simulator": simulator, "counts": target.counter != "none", "problem": problem}


def _problem(target: Target) -> str:
    """Return the problem of a core's compiler or simulator, '' if both work."""
    from stages.backends.simulators.bench import compile_and_run_c

    try:
        run = compile_and_run_c(target, [], _PROGRAM, timeout=60)
    except StageError as error:
        return escape.line(str(error))
    if "works" not in run.stdout:
        return "the program's output is missing"
    if target.counter == "none":
        return ""
    short, long = (run.counts.get(name, 0) for name in ("short", "long"))
    per_turn, rest = divmod(long - short, _TURNS)
    return (
        ""
        if per_turn >= 2 and not rest
        else f"wrong count: {short:,} and {long:,} instructions for {_TURNS:,} and {2 * _TURNS:,} turns"
    )


def _lines(
    tools: Sequence[Mapping[str, Any]], optional: Sequence[Record], tests: Sequence[Mapping[str, Any]]
) -> list[str]:
    rows = [
        {
            **record,
            "version": record["version"] or "missing",
            "needed by": "all" if len(record["cores"]) == len(tests) else record["cores"],
        }
        for record in tools
    ]
    lines = in_columns(rows, ("name", "version", "minimum", "path", "needed by"))
    lines.append("")
    extras = [
        {
            **record,
            "version": record["version"] or f"not installed; a run installs it when needed, or use {record['install']}",
        }
        for record in optional
    ]
    lines += [*in_columns(extras, ("name", "group", "version")), ""]
    runs = [
        {**record, "self-test": record["problem"] or ("counts correctly" if record["counts"] else "works")}
        for record in tests
    ]
    lines += in_columns(runs, ("core", "simulator", "self-test"))
    problems = {
        f"{record['problem']}{chr(10) if record['install'] else ''}{record['install']}"
        for record in tools
        if record["problem"]
    }
    for problem in sorted(problems):
        lines += ["", *escape.message(problem).splitlines()]
    return lines
