"""The command `doit fit`."""

import json
import os
import sys
from contextlib import ExitStack, redirect_stdout
from functools import partial
from typing import Any

from pipeline.commands.command import JSON, Command, command_option, variables
from pipeline.commands.executor import EXECUTOR, selected_executor
from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError
from pipeline.plugins.registry import registry_of

_MOST_DEFAULT_JOBS = 4


class Fit(Command):
    """`doit fit`."""

    name = "fit"
    group = "compare"
    examples = (
        ("model=net.tflite", "on which boards does a network fit?"),
        ("kws_rvp 'nucleo-*' rpi-pico", "a recipe's network, on some boards"),
    )
    names = "boards"
    keys_help = (
        ("recipe", "the recipe"),
        ("NAME", "boards, with * and ?, or cores; without model= and recipe= also one recipe or model file"),
        ("model", "a TFLite or ONNX file, or zoo:NAME; with a recipe instead of its model"),
        ("target", "the same as NAME; several are separated by commas"),
    )
    variables = ("recipe", "model", "target", "board", "set")
    own_variables = (EXECUTOR,)
    doc_purpose = "list the boards that a network fits, with RAM, ROM and time"
    doc_usage = "model=x.tflite | RECIPE [BOARD... | target=a,b] [set=…] [executor=tls://…] [-n JOBS] [--json]"
    doc_description = (
        "Builds and simulates the network for all boards of `doit boards`, or for those named. RAM and ROM are those "
        "of `doit run`. Times are estimates, for boards with a timing model or an accelerator. Boards that fit come "
        "first, the fastest at the top; then boards that lack memory, the fewest missing bytes first. A float model "
        "is quantized with random calibration data. Writes build/fit/NAME.html. Exits with 0 if the table is "
        "complete, with 1 if a stage crashed."
    )
    cmd_options = (
        JSON,
        command_option(
            "jobs",
            f"number of boards that are built in parallel [default: the machine's cores, at most {_MOST_DEFAULT_JOBS}]",
            int,
            short="n",
        ),
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        from pipeline.commands.fit.measure import measure
        from pipeline.commands.fit.page import write_page
        from pipeline.commands.fit.request import request_of
        from pipeline.commands.fit.row import CRASHED, as_record, ordered
        from pipeline.commands.fit.table import fit_table
        from pipeline.keys.package_groups import install_group
        from pipeline.project import current_project
        from pipeline.runs.workspace import Workspace
        from pipeline.terminal.progress import ProgressDisplay

        words, jobs, as_json = named, options["jobs"], options["json"]
        if jobs is not None and jobs < 1:
            raise PipelineError(f"-n {jobs}: expected 1 or more")
        project = current_project()
        request = request_of(words, variables(), project, registry_of(project))
        build = project.root / "build" / "fit"
        with ExitStack() as stack:
            executor = stack.enter_context(selected_executor(self.own_values))
            display = ProgressDisplay(sys.stderr if as_json else None)
            stack.callback(display.close)
            if as_json:  # output of plug-ins must not mix with the JSON
                stack.enter_context(redirect_stdout(sys.stderr))
            workspace = stack.enter_context(Workspace(build=build, install=install_group))
            jobs = jobs or executor.max_parallel or min(os.cpu_count() or 1, _MOST_DEFAULT_JOBS)
            rows = ordered(measure(request, workspace, display, jobs, executor))
            page = write_page(request, rows, build)
            if not as_json:
                display.show(partial(fit_table, request, rows))
                display.line(project.display_path(page))
        if as_json:
            print(json.dumps([as_record(row) for row in rows], indent=1))
        return FAILED if any(row.verdict == CRASHED for row in rows) else 0
