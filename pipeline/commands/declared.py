"""The commands as pyproject.toml names them for doit: each is loaded when it is called.

Loading one takes some tenths of a second, before `guarded` of pipeline.process.interruption is at work; Ctrl-C then
ends in the same line and exit code. There is nothing yet to clean up.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

#: The module of each command's class.
MODULES = {
    "Run": "pipeline.commands.run",
    "List": "pipeline.commands.list_recipes",
    "Explain": "pipeline.commands.explain",
    "CollectGarbage": "pipeline.commands.collect_garbage",
    "MatrixJson": "pipeline.commands.matrix_json",
    "Schema": "pipeline.commands.schema",
    "Init": "pipeline.commands.new_project",
    "New": "pipeline.commands.new_recipe",
    "Calibrate": "pipeline.commands.former",
    "Bench": "pipeline.commands.bench.command",
    "Tune": "pipeline.commands.former",
    "Search": "pipeline.commands.search",
    "Targets": "pipeline.commands.catalogue.targets",
    "Boards": "pipeline.commands.catalogue.targets",
    "Kernels": "pipeline.commands.catalogue.kernels",
    "Operators": "pipeline.commands.catalogue.operators",
    "ShowStore": "pipeline.commands.show_store",
    "Compare": "pipeline.commands.compare.command",
    "Export": "pipeline.commands.export",
    "Completion": "pipeline.commands.completion",
    "Doctor": "pipeline.commands.doctor",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(MODULES[name]), name)
    except KeyboardInterrupt:
        from pipeline.process.signals import MESSAGE

        sys.stderr.write(f"{MESSAGE}\n")
        sys.stderr.flush()
        os._exit(128 + signal.SIGINT)
