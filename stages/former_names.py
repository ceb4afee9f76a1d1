"""Former names of modules: plug-ins that import them get the modules of today, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

# The longest name that fits counts. Folders first, then what left its folder.
_NAMES = {
    **{f"stages.{name}": f"stages.support.{name}" for name in ("messages", "options", "system")},
    **{
        f"stages.{name}": f"stages.ir.{name}"
        for name in (
            *("arithmetic", "graph", "models", "operators", "reference", "relax_module", "samples", "tensor_layout"),
        )
    },
    **{f"stages.{name}": f"stages.lower.{name}" for name in ("arena", "codegen", "offload", "simplify")},
    **{
        f"stages.{name}": f"stages.backends.{name}"
        for name in ("accelerators", "hardware", "kernels", "simulators", "targets", "timing")
    },
    **{f"stages.{name}": f"stages.delivery.{name}" for name in ("bench", "export")},
    **{f"stages.kernels.{name}": f"stages.backends.riscv.kernels.{name}" for name in ("riscv", "rvp")},
    **{f"stages.kernels.{name}": f"stages.backends.cortex_m.kernels.{name}" for name in ("arm_dsp", "mve")},
    **{f"stages.kernels.{name}": f"stages.backends.aarch64.kernels.{name}" for name in ("neon", "neon_dotprod")},
    "stages.kernels.generic": "stages.backends.generic.kernels.generic",
    "stages.kernels.generic.copies": "stages.backends.kernels.copies",
    "stages.compile.objects": "stages.backends.toolchain.objects",
    "stages.compile.toolchain": "stages.backends.toolchain.compiler",
    **{
        f"stages{group}.{former}": f"stages.ir.{current}"
        for group in ("", ".ir")
        for former, current in {
            "graph.packed": "packed",
            "graph.tensor": "layers.tensor",
            "models.exact": "arithmetic.exact",
            "models.naming": "naming",
            "operators.channels": "layers.channels",
            "operators.layer": "layers",
        }.items()
    },
    "stages.messages.naming": "stages.ir.naming",
    "stages.options.layer_rules": "stages.ir.graph.layer_rules",
    "stages.options.quantization": "stages.quantize.options",
    "stages.simulators.qemu": "stages.backends.qemu",
    "stages.simulators.spike": "stages.backends.riscv.spike",
}


def current_name(name: str) -> str:
    """Return today's name of a module, or of something in one; other names are returned unchanged."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        if (module := _NAMES.get(".".join(parts[:end]))) is not None:
            return ".".join([module, *parts[end:]])
    return name


class FormerNames(Loader):
    """Finds modules by their former names. Both names give the same module."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module with a former name; None for every other name."""
        if not name.startswith("stages.") or (current := current_name(name)) == name:
            return None
        if importlib.util.find_spec(current) is None:
            return None
        warnings.warn(f"{name} is now {current}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, cls(), origin=current, is_package=False)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module of today."""
        module = importlib.import_module(str(spec.origin))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Keep the module's own spec, which the import system has replaced."""
        module.__spec__ = self._spec


def install() -> None:
    """Let former names be imported."""
    if FormerNames not in sys.meta_path:
        sys.meta_path.insert(0, FormerNames)
