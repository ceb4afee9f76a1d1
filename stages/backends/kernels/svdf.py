"""SVDF on int8: code that the kernels of all families share (include/svdf_image.h)."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.lstm import in_chunks
from stages.backends.kernels.structure import Structure
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

SVDF = Structure.of_header("fl_svdf_image", __file__, "include/svdf_image.h")


class Svdf8(Kernel):
    """SVDF, one row of the batch at a time: all features, then each with its history.

    The history moves while it is multiplied.

    function  of its C
    wide      bytes of an element in the row's copy
    prices    instructions per product of a feature, per step of its memory, per feature, and per unit
    """

    ops: ClassVar[frozenset[str]] = frozenset({"svdf"})
    sources = ("svdf.c",)
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    function: ClassVar[str]
    wide: ClassVar[int] = 1
    prices: ClassVar[tuple[float, float, float, float]]

    @abstractmethod
    def chunk(self, target: Target) -> int:
        """Elements of a row that are multiplied at a time."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "int8" else f"{view.inputs[0].dtype}; this kernel is for int8"

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, units = view.op, view.outputs[0].shape[1]
        feature = view.constant("feature")
        feature = np.pad(feature, ((0, -len(feature) % 4), (0, 0)))
        fields = {
            "units": units,
            "rank": op.rank,
            "depth": op.depth,
            "memory": op.memory,
            "feature_multiplier": op.feature_multiplier,
            "feature_shift": op.feature_shift,
            "multiplier": op.multiplier,
            "shift": op.shift,
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {
            "feature": in_chunks(feature.reshape(-1, 4, op.depth).transpose(1, 0, 2), self.chunk(target)),
            "feature_bias": (-op.input_zero_point * feature.sum(axis=1, dtype=np.int64)).astype(np.int32),
            "time": view.constant("time"),
            "bias": view.constant("bias") if view.has("bias") else np.zeros(units, np.int32),
            "svdf": SVDF.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.svdf import svdf_of_four

        chunk = self.chunk(target)
        row_bytes = -(-view.op.depth // chunk) * chunk * self.wide
        sums = -(-view.outputs[0].shape[1] * view.op.rank // 4) * 4
        return svdf_of_four(view, self.function, SVDF.shape, chunk, sums + -(-row_bytes // 16) * 4)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Add 2 instructions per copied element and 60 per call."""
        op, (batch, units) = view.op, view.outputs[0].shape
        product, step, feature, unit = self.prices
        depth = -(-op.depth // self.chunk(target)) * self.chunk(target)
        unit_cost = op.rank * (product * depth + step * op.memory + feature) + unit
        return float(batch * (units * unit_cost + 2 * op.depth + 60))
