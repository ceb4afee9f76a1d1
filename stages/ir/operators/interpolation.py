"""RESIZE_BILINEAR of 8 bits, as in LiteRT: int8 in integers, uint8 in float32."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.operators.declaration import Legalization, Operator, Tensors
from stages.ir.operators.resizing import RESIZE_BILINEAR_OPTIONS, RESIZED_SIZES, resized
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

FRACTION_BITS = 10  # of a position, for int8


class ResizeBilinear(LayerOp):
    """Interpolation between the two source rows and columns of each output row and column.

    `rows` and `columns`, int32[size, 2], are the source positions. int8: the share of the second one is `row_shares`,
    `column_shares`, int32[size], in 1024ths, and the sum of four products is rounded once, halves away from zero.
    uint8: shares, products and sums are float32, in the order of the formula; a half is added and the result truncated.

    y = x[r0, c0] * (1 - p) * (1 - q) + x[r1, c0] * p * (1 - q) + x[r0, c1] * (1 - p) * q + x[r1, c1] * p * q
    """

    op: Literal["resize_bilinear"] = "resize_bilinear"

    def weighted(self, view: LayerView, x: Array) -> Array:
        """Sum of the four products: int64 in 2^-20 for int8, float32 for uint8."""
        unit = _unit_share(view)
        (above, below), (left, right) = (view.constant(name).T for name in ("rows", "columns"))
        p = view.constant("row_shares").astype(unit.dtype)[:, None, None]
        q = view.constant("column_shares").astype(unit.dtype)[:, None]
        wide = x.astype(unit.dtype)

        def at(rows: Array, columns: Array) -> Array:
            corner: Array = wide[:, rows][:, :, columns]
            return corner

        total = at(above, left) * (unit - p) * (unit - q) + at(below, left) * p * (unit - q)
        result: Array = total + at(above, right) * (unit - p) * q + at(below, right) * p * q
        return result

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        total = self.weighted(view, inputs[0])
        if view.inputs[0].dtype == "uint8":
            return (total + np.float32(0.5)).astype(np.int32).astype(np.uint8)
        half = np.where(total > 0, 1, -1) << 2 * FRACTION_BITS - 1
        nearest = np.sign(total + half) * (np.abs(total + half) >> 2 * FRACTION_BITS)
        return nearest.astype(np.int8)


class EvenResize(ResizeBilinear):
    """As ResizeBilinear of int8 on one scale in ONNX Runtime.

    Halves of the sum less the zero point round to the even number.
    """

    op: Literal["even_resize_bilinear"] = "even_resize_bilinear"  # type: ignore[assignment]
    alias: ClassVar[str] = "resize_bilinear"
    zero_point: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.ir.arithmetic.pairs import halves_to_even

        total = self.weighted(view, inputs[0]) - (self.zero_point << 2 * FRACTION_BITS)
        return np.asarray(halves_to_even(total, 2 * FRACTION_BITS, 0) + self.zero_point).astype(np.int8)


def _unit_share(view: LayerView) -> Array:
    """1 as a share: an int64 or a float32."""
    return np.asarray(np.float32(1) if view.inputs[0].dtype == "uint8" else np.int64(1 << FRACTION_BITS))


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    size = model.builder.constant("size", np.array(spec.size, np.int32))
    options = {"alignCorners": spec.align_corners, "halfPixelCenters": spec.half_pixel_centers}
    return model.builder.emit("RESIZE_BILINEAR", [x, size], None, None, spec.op, "ResizeBilinearOptions", options)


OPERATORS = (
    Operator(
        "RESIZE_BILINEAR",
        resized,
        Tensors((2, 2), indices=(1,), layout="following"),
        table=RESIZE_BILINEAR_OPTIONS,
        legalization=Legalization((ResizeBilinear, EvenResize)),
        model=SingleOperatorModel(_model, frozenset({"size", "align_corners", "half_pixel_centers"}), ("size",)),
        limits=f"{RESIZED_SIZES}; 8 bits: raw integers, scales are ignored",
    ),
)
