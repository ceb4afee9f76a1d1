"""Large libraries that are imported at their first use: planning a run must not load them.

A module writes `from stages.support.lazy import np`, and uses `np` only inside of functions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["T", "ir", "ir_builder", "np", "npt", "onnx", "relax", "s_tir", "schema", "tirx", "tvm", "tvm_ffi"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import onnx
    import tvm
    import tvm_ffi
    from ai_edge_litert import schema_py_generated as schema
    from tvm import ir, relax, s_tir, tirx
    from tvm.script import ir_builder
    from tvm.tirx.script.builder import ir as T
else:

    class _LazyModule:
        """Stands for a module, and imports it when the first attribute is read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)  # the next read does not come here
            return value

    np = _LazyModule("numpy")
    npt = _LazyModule("numpy.typing")
    onnx = _LazyModule("onnx")
    schema = _LazyModule("ai_edge_litert.schema_py_generated")
    tvm = _LazyModule("tvm")
    T = _LazyModule("tvm.tirx.script.builder.ir")
    ir_builder = _LazyModule("tvm.script.ir_builder")
    tvm_ffi = _LazyModule("tvm_ffi")
    ir, relax, s_tir, tirx = (_LazyModule(f"tvm.{name}") for name in ("ir", "relax", "s_tir", "tirx"))
