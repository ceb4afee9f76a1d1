"""CONV_2D: panels of four pixels times all output channels.

TIR of the GEMM kernel: gather a panel, multiply it with all channels.

    for n in images (or rows of images, `pixel_runs`), t in tiles of R pixels:
      panel  panel[step, R] <- rows t * R ... of the matrix, its columns, or windows of the image   arm_dsp_panel_*
      gemm   y[R, N] <- requantize(bias + panel * weights)                                          arm_dsp_gemm_*

Remaining pixels have separate blocks, `panel_rest` and `gemm_rest`. If the number of channels is odd, `gemm_odd`
computes the last one in a pair with the one before it. The panel is one buffer of words that all tiles use.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.cortex_m.kernels.arm_dsp import packing
from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic, rounding_suffix
from stages.backends.cortex_m.kernels.arm_dsp.panels import (
    FIELDS,
    GEOMETRY,
    channel_step,
    fields,
    geometry,
    is_planar,
    layer_form,
    pixel_runs,
    step_elements,
)
from stages.backends.cortex_m.kernels.arm_dsp.requantize_tir import requantize
from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    same_bytes,
    weight_zero_point,
    why_not_sums,
    why_not_types,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, run_elements
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import output, widen
from stages.backends.kernels.tir.window import gathered_element
from stages.backends.kernels.tir.words import byte, half_word
from stages.backends.kernels.windows import whole_windows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class GemmParams(KernelParams):
    """`mr` pixels are multiplied with all output channels at a time."""

    mr: int = Field(default=4, ge=3, le=4)


class Conv2d(Kernel):
    """Convolution: pointwise layers on NHWC, NCHW or NHCW, other windows on NHWC.

    The output may have any of these layouts. A panel of four or three pixels, widened to int16, is multiplied with all
    channels in one call and needs no other scratch. A pointwise layer with equal input and output channels can work in
    place.
    """

    name = "arm_dsp.gemm_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm.S", "panel.c", "panel.S")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h")
    params = GemmParams
    band_layouts: ClassVar[tuple[str, ...]] = ("NHCW",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, long=True))

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: a panel holds everything they depend on."""
        return same_bytes(view.inputs[0], view.outputs[0]) and not has_windows(view)

    def candidates(self, view: LayerView, target: Target) -> Sequence[KernelParams]:
        """Four or three pixels; three save 5 % of the inner loop and cost more around it."""
        return GemmParams(mr=4), GemmParams(mr=3)

    def pack(self, view: LayerView, params: GemmParams) -> Mapping[str, Array]:
        layer_constants, steps = arithmetic(view, long=True), step_elements(view, params.mr)
        pairs = packing.channel_pairs(view.op.out_channels)
        how = packing.form(layer_constants, pairs)
        parts = [
            packing.bias_words(layer_constants.bias, pairs, how),
            packing.weight_words(layer_constants.weights, steps, pairs, how),
            packing.scale_words(layer_constants.scale.scale, pairs),
        ]
        constants = {"pairs": np.concatenate(parts, 1), "fields": FIELDS.of(fields(view, params.mr))}
        if has_windows(view):
            constants["geometry"] = GEOMETRY.of(geometry(view))
        return constants

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        return conv2d(view, params.mr)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Return the estimated instructions of tiles, remaining pixels and gathered windows."""
        mr = params.mr
        runs, pixels = pixel_runs(view)
        left = _tile_cost(view, params, pixels % mr) if pixels % mr else 0.0
        windows = _gathered(view, mr) if has_windows(view) else 0.0
        tiles = runs * (pixels // mr * _tile_cost(view, params, mr) + left)
        return view.outputs[0].shape[0] * (tiles + windows)


def _tile_cost(view: LayerView, params: GemmParams, rows: int) -> float:
    """Return the instructions for `rows` pixels: panel of a pointwise layer, channel pairs."""
    planar_in, planar_out = map(is_planar, (view.inputs[0], view.outputs[0]))
    steps, form = len(step_elements(view, params.mr)), layer_form(view)
    panel = 0.0 if has_windows(view) else 20.0 * steps if planar_in else rows * 2.0 * steps
    by_twos = rows == 3 and form == "ab"
    weights, activations, products = 2 if form == "ab" else 3, (rows + 1) // 2, 2 * rows
    loop = 0.1 if by_twos else 0.4
    step = loop + (8.5 if by_twos else weights + activations + products)
    around = 20 + 8 * rows + (5 if rows == 3 and planar_out else 0)
    if arithmetic(view, long=True).scale.long:
        around += 2 + 8 * rows
    return 60 + panel + -(-columns_of(view) // 2) * (steps * step + around)


def _gathered(view: LayerView, mr: int) -> float:
    """Return the estimated instructions of panel.c, most for windows that leave the image."""
    op, (_, height, width, _) = view.op, view.outputs[0].shape
    steps, run, is_row = len(step_elements(view, mr)), run_elements(view), op.dilation[1] == 1
    if INT8_OFFSET[view.inputs[0].dtype] or weight_zero_point(view):
        runs = op.kernel[0] * (1 if is_row else op.kernel[1])
        return float(height * width * (100 + runs * (57 + 28 * -(-run // 4))))
    by_bytes = is_row and view.inputs[0].shape[3] % 4 != 0
    edge = 150 + 60 * op.kernel[0] + (19 * op.kernel[0] * -(-run // 4) if by_bytes else 2.6 * steps)
    inside = is_row * len(whole_windows(view, 1))
    outside = width * (height - len(whole_windows(view, 0)))  # above or below
    return height * (inside * (35 + 1.8 * steps) + (width - inside) * edge) + 50 * outside


def _why_not_shape(view: LayerView) -> str:
    op, x = view.op, view.inputs[0]
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if op.out_channels < 2:
        return "one output channel; this kernel computes pairs"
    if {x.layout, view.outputs[0].layout} == {"NCHW", "NHCW"}:
        return "an NCHW and an NHCW tensor"
    if is_planar(x) and has_windows(view):
        return f"windows of an {x.layout} input; this kernel gathers them from NHWC"
    return ""


Expr = Any  # a TIR expression or a Python int


class _Gemm:
    """Blocks of one layer."""

    def __init__(self, view: LayerView, mr: int) -> None:
        self.view = view
        self.depth, self.columns = depth_of(view), columns_of(view)
        self.runs, self.pixels = pixel_runs(view)
        self.steps = len(step_elements(view, mr))
        constants = arithmetic(view, long=True)
        self.weight_zero_point, self.scale = constants.weight_zero_point, constants.scale
        self.pair_words = 2 + self.steps + 2 * constants.scale.scale.shape[1]
        self.form = layer_form(view)
        self.offsets = int(self.form == "bytes")
        self.planar = is_planar(view.outputs[0])

    def words(self, rows: int) -> int:
        """Words of a panel of `rows` rows."""
        return (self.steps + self.offsets) * rows

    def gather(self, name: str, rows: int) -> Block:
        """Fill the panel of `rows` pixels from matrix rows, matrix columns or the image."""
        view, flipped = self.view, INT8_OFFSET[self.view.inputs[0].dtype]
        planes, windows = is_planar(view.inputs[0]), has_windows(view)
        run = self.depth if planes else run_elements(view)
        rest = 2 if planes else 4

        def element(b: Any, start: Expr, row: Expr, k: Expr) -> Expr:
            """Element k of the row as int32."""
            if windows:
                value = self._window_element(b, start + row, k)
            else:
                value = widen(b.x[k, row] if planes else b.x[row, k])
            return value - flipped if flipped else value

        def word(low: Expr, high: Expr) -> Expr:
            return T.bitwise_and(low, 0xFFFF) + high * 65536

        def step(b: Any, start: Expr, row: Expr, number: Expr, low: Expr, high: Expr) -> None:
            """Elements `low` and `high` as step `number` of the row."""
            both = word(element(b, start, row, low), 0 if high is None else element(b, start, row, high))
            store(b.panel, both, number * rows + row)

        def row_of(b: Any, start: Expr, row: Expr) -> None:
            per_run = (run + 1) // 2  # steps
            with loop(("r", self.depth // run)) as r:
                first, at = r * run, r * per_run
                if run >= 4 and not planes:
                    with loop(("four", run // 4), ("odd", 2)) as (four, odd):
                        k = first + four * 4 + odd
                        step(b, start, row, at + four * 2 + odd, k, k + 2)
                if planes and run >= 2:
                    with loop(("two", run // 2)) as two:
                        k = first + two * 2
                        step(b, start, row, at + two, k, k + 1)
                for number, k in enumerate(range(run - run % rest, run, 2)):
                    last = at + (run // 2 if planes else run // 4 * 2) + number
                    step(b, start, row, last, first + k, first + (k + 1) if k + 1 < run else None)
            if self.offsets:
                store(b.acc, 0, 0)
                with loop(("k", self.depth)) as k:
                    store(b.acc, b.acc[0] + element(b, start, row, k), 0)
                store(b.panel, b.acc[0] * (0 - self.weight_zero_point), self.steps * rows + row)

        def meaning(b: Any) -> None:
            if windows:
                with position("start", b.first[0]) as start, loop(("row", rows)) as row:
                    row_of(b, start, row)
            else:
                with loop(("row", rows)) as row:
                    row_of(b, 0, row)

        return Block(name, *self._gather_call(rows, meaning))

    def _gather_call(self, rows: int, meaning: Callable[[Any], None]) -> tuple[Any, ...]:
        """Return operands, meaning, function and arguments of the block that fills a panel."""
        view = self.view
        x = view.inputs[0]
        flipped = INT8_OFFSET[x.dtype]
        panel = Operand("panel", (self.words(rows),), "int32", "w")
        last = (flipped, self.offsets, self.weight_zero_point)
        operands: tuple[Operand, ...]
        if has_windows(view):
            operands = (
                Operand("x", x.shape[1:], x.dtype),
                Operand("first", (1,), "int32"),
                Operand("geometry", GEOMETRY.shape, "int32"),
                panel,
                accumulator(),
            )
            arguments = lambda b: [b.panel, b.x, b.first[0], rows, b.geometry, *last]  # noqa: E731
            return operands, meaning, "arm_dsp_panel_windows", arguments
        if is_planar(x):
            operands = (Operand("x", (self.depth, rows), x.dtype), panel, accumulator())
            arguments = lambda b: [b.panel, b.x, rows, self.depth, channel_step(x), *last]  # noqa: E731
            return operands, meaning, "arm_dsp_panel_planes", arguments
        operands = (Operand("x", (rows, self.depth), x.dtype), panel, accumulator())
        if rows in (3, 4) and not flipped and not self.offsets:
            return operands, meaning, f"arm_dsp_put_matrix_r{rows}", lambda b: [b.panel, b.x, self.depth]
        return operands, meaning, "arm_dsp_panel_rows", lambda b: [b.panel, b.x, rows, self.depth, *last]

    def _window_element(self, b: Any, pixel: Expr, k: Expr) -> Expr:
        g = geometry(self.view)
        return gathered_element(g, pixel, k, lambda iy, ix, c: widen(b.x[iy, ix, c]), g["fill"])

    def weight(self, word: Expr, number: int, channel: int) -> Expr:
        """Return the weight of element `number` of a step for channel A (0) or B (1)."""
        if self.form == "bytes":
            return byte(word, 2 * number + channel)
        a = byte(word, 2 * number)
        return T.shift_right(half_word(word, number) - a, 8) if channel else a

    def multiply(self, name: str, rows: int, pairs: int) -> Block:
        """Compute all columns of `pairs` channel pairs for `rows` pixels."""
        op, dtype, steps = self.view.op, self.view.outputs[0].dtype, self.steps

        def meaning(b: Any) -> None:
            with loop(("row", rows), ("pair", pairs)) as (row, pair):
                for channel in range(2):
                    bias = b.pairs[pair, channel]
                    if self.form == "ab" and channel:
                        bias = T.shift_right(bias - b.pairs[pair, 0], 8)
                    store(b.acc, bias + b.panel[steps * rows + row] if self.offsets else bias, 0)
                    with loop(("step", steps)) as step:
                        x, w = b.panel[step * rows + row], b.pairs[pair, step + 2]
                        products = [half_word(x, i) * self.weight(w, i, channel) for i in range(2)]
                        store(b.acc, b.acc[0] + products[0] + products[1], 0)
                    words = [b.pairs[pair, at + channel] for at in range(steps + 2, self.pair_words, 2)]
                    scaled = requantize(b.acc[0], words, op.rounding)
                    column = pair * 2 + channel
                    store(b.y, output(self.view, scaled), *((column, row) if self.planar else (row, column)))

        operands = (
            Operand("panel", (self.words(rows),), "int32"),
            Operand("pairs", (pairs, self.pair_words), "int32"),
            Operand("fields", FIELDS.shape, "int32"),
            Operand("y", (2 * pairs, rows) if self.planar else (rows, 2 * pairs), dtype, "w"),
            accumulator(),
        )
        suffix = ("planes" if self.planar else "rows") + self._kind()
        function = f"arm_dsp_gemm_{self.form}_r{rows}_{suffix}"
        return Block(name, operands, meaning, function, lambda b: [b.panel, b.pairs, b.y, pairs, b.fields])

    def _kind(self) -> str:
        """Return the function suffix of the rounding, or of results clipped to less than 8 bits."""
        rounding = rounding_suffix(self.view)
        full = self.form == "ab" and not rounding and self.view.op.act_max - self.view.op.act_min == 255
        return "_full" if full else rounding


def conv2d(view: LayerView, mr: int) -> Lowering:
    """Build the layer, `mr` pixels at a time."""
    g, windows = _Gemm(view, mr), has_windows(view)
    x, y = view.inputs[0], view.outputs[0]
    runs, planes = y.shape[0] * g.runs, is_planar(x)
    parts = {suffix: rows for suffix, rows in (("", mr), ("_rest", g.pixels % mr)) if rows and rows <= g.pixels}
    flat = (runs, g.depth, g.pixels) if planes else (runs, g.pixels, g.depth)

    with Function("conv2d") as f:
        source = f.input(0, x.shape if windows else flat, x.dtype)
        pairs = f.constant("pairs", (-(-g.columns // 2), g.pair_words), "int32")
        fields = f.constant("fields", FIELDS.shape, "int32")
        geometry_fields = f.constant("geometry", GEOMETRY.shape, "int32") if windows else None
        out = f.output(0, (runs, g.columns, g.pixels) if g.planar else (runs, g.pixels, g.columns), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if windows else None
        panel = f.scratch("panel", (g.words(max(parts.values())),), "int32")

        def part(suffix: str, start: Any, n: Any) -> None:
            """Build the blocks for the pixels of a range from pixel `start` of run n."""
            rows = parts[suffix]
            collect = g.gather("panel" + suffix, rows)
            if windows:
                image, before = (n, 0) if g.runs == 1 else (n // g.runs, n % g.runs * g.pixels)
                f.set_position("first" + suffix, first, before + start)
                f.place(
                    collect,
                    x=(source, image, 0, 0, 0),
                    first=first,
                    geometry=geometry_fields,
                    panel=(panel, 0),
                    acc=acc,
                )
            else:
                rows_of_x = (source, n, 0, start) if planes else (source, n, start, 0)
                f.place(collect, x=rows_of_x, panel=(panel, 0), acc=acc)
            even = g.columns // 2
            for name, pair, count, column in (("gemm", 0, even, 0), ("gemm_odd", even, g.columns % 2, g.columns - 2)):
                if count:
                    place = (out, n, column, start) if g.planar else (out, n, start, column)
                    block = g.multiply(name + suffix, rows, count)
                    f.place(block, panel=(panel, 0), pairs=(pairs, pair, 0), fields=fields, y=place, acc=acc)

        with f.loop(("n", runs)) as (n,):
            if "" in parts:
                with f.loop(("t", g.pixels // mr)) as (t,):
                    part("", t * mr, n)
            if "_rest" in parts:
                part("_rest", g.pixels - g.pixels % mr, n)
    return f.lowering()
