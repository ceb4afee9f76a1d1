"""Functions of one 8-bit value by table: activations, and QUANTIZE between 8-bit types."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit, same_bytes
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class ByteTable(Kernel):
    """Look up each element in a table of 256 bytes.

    Input and output may each be int8 or uint8.

    function  `void f(const void *x, const void *table, void *y, int32_t count)`; y may be x
    """

    function: ClassVar[str]
    ops: ClassVar[frozenset[str]] = frozenset({"activation", "requantize"})
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view, same=False):
            return bad
        return "" if same_bytes(view.inputs[0], view.outputs[0]) else "output in another order than the input"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """The table, indexed by the bits of the input: int8's entry -1 is entry 255."""
        values = np.arange(256).astype(np.uint8).view(view.inputs[0].dtype)
        return {"table": np.ascontiguousarray(view.op.compute(view, values).astype(view.outputs[0].dtype))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.table import table

        return table(view, self.function)
