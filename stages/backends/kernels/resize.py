"""RESIZE_BILINEAR of int8: code that the kernels of all families share."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import widen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np, tirx

RESIZE = Structure.of_header("fl_resize", __file__, "include/resize_image.h")
_WHOLE = 1024  # 1 as a share in a layer's constants


class Resize8(Kernel):
    """Interpolate rows of the image into scratch, then pixels along that row.

    Tables have for each output row and column the two source indices, and the weight of the second in `whole`ths.

    function  of its C
    whole     denominator of the weights; below 1024, the nearer source comes first and has half or more
    prices    instructions per output element, per element of a row in scratch, and per pixel
    """

    ops: ClassVar[frozenset[str]] = frozenset({"resize_bilinear"})
    sources: ClassVar[tuple[str, ...]] = ("resize.c",)
    function: ClassVar[str]
    whole: ClassVar[int]
    prices: ClassVar[tuple[float, float, float]]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        for tensor in (*view.inputs, *view.outputs):
            if tensor.dtype != "int8":
                return f"tensor {tensor.name} is {tensor.dtype}; this kernel is for int8"
        if bad := why_not_nhwc(view):
            return bad
        try:
            self.pack(view, None)
        except ValueError as error:
            return str(error)
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        (_, _, width, channels), (_, out_height, out_width, _) = view.inputs[0].shape, view.outputs[0].shape
        fields = {"width": width, "channels": channels, "out_height": out_height, "out_width": out_width}
        tables = {name: between(view, name, self.whole) for name in ("row", "column")}
        return {"rows": tables["row"], "columns": tables["column"], "resize": RESIZE.of(fields)}

    @abstractmethod
    def row_bytes(self, view: LayerView, target: Target) -> int:
        """Return the bytes of an image row in scratch."""

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return resize(view, self.function, RESIZE.shape, self.whole, -(-self.row_bytes(view, target) // 4))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        element, row_element, pixel = self.prices
        (_, _, width, _), (batch, height, out_width, channels) = view.inputs[0].shape, view.outputs[0].shape
        row = out_width * (channels * element + pixel) + width * channels * row_element
        return batch * height * (row + 30)


class HalvingResize(Resize8):
    """Resize with weights in eighths, by halving sums of 16-bit lanes.

    See include/resize_halves.h.
    """

    whole = 8
    parts: ClassVar[float]  # how much longer an element takes where channels are no whole groups
    units: ClassVar[float]  # where they are whole units of four bytes

    @abstractmethod
    def group(self, target: Target) -> int:
        """Channels that are computed at once."""

    def row_bytes(self, view: LayerView, target: Target) -> int:
        (_, _, width, channels), group = view.inputs[0].shape, self.group(target)
        return 2 * width * group * -(-channels // group)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        channels = view.inputs[0].shape[-1]
        longer = 1.0 if channels % self.group(target) == 0 else self.parts if channels % 4 else self.units
        return super().cost(view, params, target) * longer


def between(view: LayerView, axis: str, whole: int) -> Array:
    """Return two source indices and the weight of the second for each output `row` or `column`.

    int32[size, 3], with weights in `whole`ths. Raise ValueError if a weight is not a multiple of 1/`whole`.
    """
    places, shares = view.constant(f"{axis}s"), view.constant(f"{axis}_shares")
    table = np.zeros((len(places), 3), np.int32)
    for line, (first, second), share in zip(table, places.tolist(), shares.tolist(), strict=True):
        part = 0 if first == second else share
        if part * whole % _WHOLE:
            raise ValueError(f"an interpolation weight of {part}/{_WHOLE} is not a multiple of 1/{whole}")
        part = part * whole // _WHOLE
        if whole < _WHOLE and 2 * part > whole:
            first, second, part = second, first, whole - part
        line[:] = (first, second if part else first, part)
    return table


def resize(view: LayerView, function: str, parameters: tuple[int, ...], whole: int, words: int) -> Lowering:
    """Return the layer as calls of `function`, with tables of kernels.resize.between.

    The function gets `words` words of scratch.
    """
    x, y = view.inputs[0].shape, view.outputs[0].shape
    batch, height, width, channels = y

    def meaning(b: Any) -> None:
        with (
            loop(("oy", height), ("ox", width)) as (oy, ox),
            position("r0", b.rows[oy, 0]) as r0,
            position("r1", b.rows[oy, 1]) as r1,
            position("c0", b.columns[ox, 0]) as c0,
            position("c1", b.columns[ox, 1]) as c1,
            loop(("c", channels)) as c,
        ):
            p, q = b.rows[oy, 2], b.columns[ox, 2]
            store(b.total, widen(b.x[r0, c0, c]) * ((whole - p) * (whole - q)), 0)
            store(b.total, b.total[0] + widen(b.x[r1, c0, c]) * (p * (whole - q)), 0)
            store(b.total, b.total[0] + widen(b.x[r0, c1, c]) * ((whole - p) * q), 0)
            store(b.total, b.total[0] + widen(b.x[r1, c1, c]) * (p * q), 0)
            half = tirx.Select(b.total[0] > 0, T.int32(whole * whole // 2), T.int32(-(whole * whole // 2)))
            store(b.y, T.Cast("int8", T.truncdiv(b.total[0] + half, T.int32(whole * whole))), oy, ox, c)

    tables = (Operand("rows", (height, 3), "int32"), Operand("columns", (width, 3), "int32"))
    operands = (
        Operand("x", x[1:], "int8"),
        *tables,
        Operand("resize", parameters, "int32"),
        Operand("y", y[1:], "int8", "w"),
        Operand("scratch", (words,), "int32", "rw"),
        accumulator("total"),
    )
    arguments = lambda b: [b.x, b.rows, b.columns, b.y, b.scratch, b.resize]  # noqa: E731
    image = Block("image", operands, meaning, function, arguments)
    with Function("resize_bilinear") as f:
        source = f.input(0, x, "int8")
        constants = {table.name: f.constant(table.name, table.shape, "int32") for table in tables}
        constants["resize"] = f.constant("resize", parameters, "int32")
        out = f.output(0, y, "int8")
        scratch = {"scratch": f.scratch("scratch", (words,), "int32"), "total": f.scratch("total", (1,), "int32")}
        with f.loop(("n", batch)) as (n,):
            f.place(image, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), **constants, **scratch)
    return f.lowering()
