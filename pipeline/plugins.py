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

_MODULES = {
    "Run": "pipeline.command_line",
    "List": "pipeline.command_line",
    "Explain": "pipeline.commands",
    "CollectGarbage": "pipeline.commands",
    "MatrixJson": "pipeline.commands",
    "Schema": "pipeline.commands",
    "Init": "pipeline.new_project",
    "Calibrate": "pipeline.calibrate",
    "Bench": "pipeline.bench.command",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except KeyboardInterrupt:
        from pipeline.process.signals import MESSAGE

        sys.stderr.write(f"{MESSAGE}\n")
        sys.stderr.flush()
        os._exit(128 + signal.SIGINT)
