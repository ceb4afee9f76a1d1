"""FULLY_CONNECTED: dot products over streamed weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.arm_dsp.base import ArmDspKernel, arithmetic, clamp_fields
from stages.kernels.eight_bit import why_not_types
from stages.kernels.generic.base import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.arm_dsp.base import Arithmetic
    from stages.kernels.arm_dsp.packing import Packing
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

UNITS = 8  # of a block
FIELDS = ("fours", "zero_point", "floor", "low")  # of dot.S


class FullyConnected(ArmDspKernel):
    """A row of x times all units, eight at once; for a batch of one, and row by row for others.

    x is read where it lies. Only uint8 rows, rows that are no multiple of four long, and those that meet weights with a
    zero point are copied into scratch first.
    """

    name = "arm_dsp.dot_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot.S", "rows.c")
    headers: ClassVar[tuple[str, ...]] = ("dot.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.arm_dsp import packing

        made, how, blocks = layer_arithmetic(view), layer_form(view), block_count(view)
        pairs = padded_pairs(view)
        steps = packing.depth_steps_of_fours(view.op.depth)
        words = packing.weight_words(with_padding(made.weights, 0), steps, pairs, how)
        bias = packing.bias_words(with_padding(made.bias, 0), pairs, how)
        weights = words.reshape(blocks, 4, -1, 2).transpose(0, 2, 1, 3)
        scale = packing.scale_words(with_padding(made.scale.scale, 0), pairs)
        parts = [part.reshape(blocks, -1) for part in (bias, weights, scale)]
        fields = (fours(view), *clamp_fields(view))
        return {"blocks": np.concatenate(parts, 1).astype(np.int32), "fields": np.array(fields, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.fully_connected_tir import fully_connected

        return fully_connected(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a block: 31.8 instructions (bytes: 43.8) for four elements, 85 around; a copied element 7; as measured."""
        op = view.op
        four = 31.8 if layer_form(view) == "ab" else 43.8
        copied = 7 * op.depth if copies(view) else 0
        return float(op.batch * (block_count(view) * (fours(view) * four + 70) + copied + 60))


def _why_not_shape(view: LayerView) -> str:
    for tensor in (view.inputs[0], view.outputs[0]):
        if tensor.layout == "NCHW" and tensor.shape[3] > 1 and tensor.shape[1] * tensor.shape[2] > 1:
            return "an NCHW input or output is in another order than the weights"
    return ""


def _why_not_arithmetic(view: LayerView) -> str:
    if view.op.depth > MAX_DEPTH:
        return f"a sum has {view.op.depth} products; int32 holds {MAX_DEPTH}"
    try:
        layer_arithmetic(view)
    except ValueError as error:
        return str(error)
    return ""


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [units, depth]."""
    import numpy as np

    return arithmetic(view, view.constant("weights").astype(np.int64).reshape(view.op.units, view.op.depth))


def layer_form(view: LayerView) -> Packing:
    """How the layer's weights are packed."""
    from stages.kernels.arm_dsp import packing

    made, units = layer_arithmetic(view), view.op.units
    return packing.form(made, padded_pairs(view) % units)


def block_count(view: LayerView) -> int:
    return -(-int(view.op.units) // UNITS)


def fours(view: LayerView) -> int:
    """Groups of four elements of the depth."""
    return -(-int(view.op.depth) // 4)


def padded_pairs(view: LayerView) -> np.ndarray:
    """[pairs, 2]: units of each pair; those behind the last unit are all `units`."""
    import numpy as np

    return np.minimum(np.arange(block_count(view) * UNITS), view.op.units).reshape(-1, 2)


def with_padding(values: np.ndarray, fill: int) -> np.ndarray:
    """`values` with one more unit behind the last."""
    import numpy as np

    return np.concatenate([values, np.full((1, *values.shape[1:]), fill, values.dtype)])


def copies(view: LayerView) -> bool:
    """Whether rows of x are copied before they are multiplied."""
    return view.inputs[0].dtype == "uint8" or view.op.depth % 4 != 0 or layer_arithmetic(view).weight_zero_point != 0
