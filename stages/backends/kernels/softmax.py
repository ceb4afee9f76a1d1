"""SOFTMAX along dense rows of 8-bit tensors: code that vector kernels share."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.strides import logical_strides
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


class RowSoftmax(Kernel):
    """Softmax one row at a time, by the table of exponentials.

    `function` of its C, without the type.
    """

    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    function: ClassVar[str]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        for tensor in (*view.inputs, *view.outputs):
            if tensor.shape[-1] > 1 and logical_strides(tensor)[-1] != 1:
                return f"the row elements of {tensor.name} are not neighbours in memory"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"exp": view.constant("exp")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.softmax import softmax

        return softmax(view, f"{self.function}_{SUFFIX[view.inputs[0].dtype]}")
