"""RESIZE_BILINEAR: of 8 bits in integers (int8) or in float32 (uint8), as LiteRT has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stages.ir.operators.declaration import OneOperatorModel, Operator
from stages.ir.operators.layer import LayerOp
from stages.ir.operators.movement import RESIZE_BILINEAR_OPTIONS, RESIZED_SIZES, resized

if TYPE_CHECKING:
    from stages.ir.graph import LayerView
    from stages.ir.models.operators import OneOperator
    from stages.ir.models.tflite_writer import Tensor as FileTensor
    from stages.ir.operators.layer import Array

FRACTION_BITS = 10  # of an int8 position


class ResizeBilinear(LayerOp):
    """Between the rows and columns that `rows` and `columns`, int32[size, 2], tell of each output row and column.

    int8: the share of the second of them is `row_shares`, `column_shares`, int32[size], in 1024ths, and the sum of four
    products is rounded once, halves away from zero. uint8: shares are float32, as are products and sums, in the order
    of the formula; a half is added and the rest cut off.

    y = x[r0, c0] * (1 - p) * (1 - q) + x[r1, c0] * p * (1 - q) + x[r0, c1] * (1 - p) * q + x[r1, c1] * p * q
    """

    op: Literal["resize_bilinear"] = "resize_bilinear"

    def weighted(self, view: LayerView, x: Array) -> Array:
        """The sum of four products: of int8 an int64 in 2^-20, of uint8 a float32."""
        whole = _one(view)
        (above, below), (left, right) = (view.constant(name).T for name in ("rows", "columns"))
        p = view.constant("row_shares").astype(whole.dtype)[:, None, None]
        q = view.constant("column_shares").astype(whole.dtype)[:, None]
        wide = x.astype(whole.dtype)

        def at(rows: Array, columns: Array) -> Array:
            corner: Array = wide[:, rows][:, :, columns]
            return corner

        total = at(above, left) * (whole - p) * (whole - q) + at(below, left) * p * (whole - q)
        found: Array = total + at(above, right) * (whole - p) * q + at(below, right) * p * q
        return found

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        total = self.weighted(view, inputs[0])
        if view.inputs[0].dtype == "uint8":
            return (total + np.float32(0.5)).astype(np.int32).astype(np.uint8)
        half = np.where(total > 0, 1, -1) << 2 * FRACTION_BITS - 1
        nearest = np.sign(total + half) * (np.abs(total + half) >> 2 * FRACTION_BITS)
        return nearest.astype(np.int8)


class EvenResize(ResizeBilinear):
    """Of int8 on one scale, as ONNX Runtime has it: with the sum less the zero point, halves go to the even number."""

    op: Literal["even_resize_bilinear"] = "even_resize_bilinear"  # type: ignore[assignment]
    zero_point: int

    @property
    def named(self) -> str:
        return "resize_bilinear"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.ir.arithmetic.pairs import halves_to_even

        total = self.weighted(view, inputs[0]) - (self.zero_point << 2 * FRACTION_BITS)
        return np.asarray(halves_to_even(total, 2 * FRACTION_BITS, 0) + self.zero_point).astype(np.int8)


def _one(view: LayerView) -> Array:
    """1 as a share: an int64 or a float32."""
    import numpy as np

    return np.asarray(np.float32(1) if view.inputs[0].dtype == "uint8" else np.int64(1 << FRACTION_BITS))


def _model(one: OneOperator, x: FileTensor) -> FileTensor:
    import numpy as np

    spec = one.spec
    size = one.builder.constant("size", np.array(spec.size, np.int32))
    options = {"alignCorners": spec.align_corners, "halfPixelCenters": spec.half_pixel_centers}
    return one.builder.emit("RESIZE_BILINEAR", [x, size], None, None, spec.op, "ResizeBilinearOptions", options)


OPERATORS = (
    Operator(
        "RESIZE_BILINEAR",
        resized,
        (2, 2),
        table=RESIZE_BILINEAR_OPTIONS,
        indices=(1,),
        layout="following",
        layers=(ResizeBilinear, EvenResize),
        model=OneOperatorModel(_model, frozenset({"size", "align_corners", "half_pixel_centers"}), ("size",)),
        limits=f"{RESIZED_SIZES}; of 8 bits the integers themselves, whatever the scales",
    ),
)
