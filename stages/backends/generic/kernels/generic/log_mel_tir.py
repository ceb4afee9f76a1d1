"""TIR of log-mel spectra and of their features."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.block import Block, Function, Operand, loop, position, store
from stages.backends.kernels.tir.fixed_point import int64, select
from stages.ir.arithmetic.mel import radices
from stages.ir.operators.log_mel import is_diagonal

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Lowering
    from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int
_CELLS = 16
# Cells of the meaning's buffer, beyond those of a butterfly.
_SHIFT, _LOW, _HIGH, _TOTAL, _BEFORE, _SUM, _BITS, _WORK = range(8, 16)


def log_mel(view: LayerView, structure: tuple[int, ...]) -> Lowering:
    """Return a block for each frame; `structure` is the shape of the C structure.

    A bin is a complex number, the real part in the lower 32 bits, then an energy.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    frames, samples, mels = prod(x.shape[:-1]), x.shape[-1], y.shape[-1]
    size, points, bins = len(view.constant("window")), op.fft_length // 2, len(view.constant("ramps"))
    has_offset, emphasized = view.has("offset"), op.pre_emphasis is not None

    def meaning(b: Any) -> None:
        _load(b, op, size, points)
        done = 1
        for number, radix in enumerate(radices(points)):
            _stage(b, number, radix, done, points)
            done *= radix
        _energies(b, points)
        first = int(view.constant("edges")[0])
        store(b.w, T.int64(0), _BEFORE)
        with loop(("side", mels + 1)) as side:
            _side(b, op.power, side, first)
            with T.serial(T.min(side, 1)):  # none for the rising side of the first filter
                if has_offset:
                    _add_offset(b, op.power, side - 1, mels)
                _logarithm(b, op, side - 1)
            store(b.w, b.w[_LOW], _BEFORE)

    constants = (
        Operand("window", (size,), "int32"),
        Operand("sines", (op.fft_length,), "int32"),
        Operand("table", (65 if op.power == 2 else 65 + 97,), "int32"),
        Operand("edges", (mels + 2,), "int32"),
        Operand("ramps", (bins,), "uint16"),
        Operand("bias", (mels,), "int32"),
        *((Operand("offset", (2, mels), "int32"),) if has_offset else ()),
        Operand("log_mel", structure, "int32"),
    )
    operands = (
        Operand("x", (samples,), "int16"),
        *constants,
        Operand("y", (mels,), "int32", "w"),
        Operand("bins", (points,), "int64", "rw"),
        Operand("w", (_CELLS,), "int64", "rw"),
    )

    def arguments(b: Any) -> list[Any]:
        offset = b.offset if has_offset else b.bias  # which is not read then
        return [b.x, b.window, b.sines, b.table, b.edges, b.ramps, b.bias, offset, b.bins, b.y, b.log_mel]

    function = f"fl_log_mel_{'power' if op.power == 2 else 'magnitude'}{'_emphasized' if emphasized else ''}"
    frame = Block("frame", operands, meaning, function, arguments)
    with Function("log_mel") as f:
        source = f.input(0, (frames, samples), "int16")
        buffers = {c.name: f.constant(c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, (frames, mels), "int32")
        scratch = {"bins": f.scratch("bins", (points,), "int64"), "w": f.scratch("w", (_CELLS,), "int64")}
        with f.loop(("n", frames)) as (n,):
            f.place(frame, x=(source, n, 0), y=(out, n, 0), **buffers, **scratch)
    return f.lowering()


def _load(b: Any, op: Any, size: int, points: int) -> None:
    """Store windowed samples as bins, in the order of the first stage."""

    def sample(i: Expr) -> Expr:
        if op.pre_emphasis is None:
            return int64(b.x[i]) * T.int64(1 << 15)
        return int64(b.x[i + 1]) * T.int64(1 << 15) - int64(b.x[i]) * T.int64(op.pre_emphasis)

    store(b.w, T.int64(0), _BITS)
    with loop(("i", size)) as i:
        store(b.w, sample(i), _WORK)
        store(b.w, T.bitwise_or(b.w[_BITS], T.bitwise_xor(b.w[_WORK], _right(b.w[_WORK], 63))), _BITS)
    store(b.w, T.int64(0), _SHIFT)
    with loop(("bit", 16)) as bit:
        is_free = _right(b.w[_BITS], bit + 15) == T.int64(0)
        store(b.w, b.w[_SHIFT] + T.Cast("int64", is_free), _SHIFT)

    def windowed(i: Expr) -> Expr:
        shifted = T.shift_left(sample(i), b.w[_SHIFT])
        return select(i < size, _right(shifted * int64(b.window[i]), 32), T.int64(0))

    digits = radices(points)
    with loop(*((f"d{number}", radix) for number, radix in enumerate(digits))) as variables:
        to, span, index, before = 0, points, 0, 1
        for variable, radix in zip(variables if len(digits) > 1 else (variables,), digits, strict=True):
            span //= radix
            index, to, before = index + variable * span, to + variable * before, before * radix
        store(b.w, windowed(2 * index), 0)
        store(b.w, windowed(2 * index + 1), 1)
        store(b.bins, _packed(b.w[0], b.w[1]), to)


def _stage(b: Any, number: int, radix: int, size: int, points: int) -> None:
    """Join transforms of `size` points, in place."""
    turn, scale = 2 * points // (radix * size), radix >> 1
    with loop((f"g{number}", points // (radix * size)), (f"j{number}", size)) as (group, j):
        first = group * (radix * size) + j
        for q in range(radix):
            bin_ = b.bins[first + q * size]
            real, imaginary = _real(bin_), _imaginary(bin_)
            direct = _right(real, scale), _right(imaginary, scale)
            if q == 0 or size == 1:
                values = direct
            else:
                cosine, sine = int64(b.sines[j * (q * turn) + points // 2]), int64(b.sines[j * (q * turn)])
                turned = (
                    _right(real * cosine, 32) + _right(imaginary * sine, 32),
                    _right(imaginary * cosine, 32) - _right(real * sine, 32),
                )
                values = tuple(select(j == 0, a, t) for a, t in zip(direct, turned, strict=True))
            store(b.w, values[0], 2 * q)
            store(b.w, values[1], 2 * q + 1)
        w = b.w
        if radix == 2:
            outputs = [(w[0] + w[2], w[1] + w[3]), (w[0] - w[2], w[1] - w[3])]
        else:
            outputs = [
                (w[0] + w[4] + w[2] + w[6], w[1] + w[5] + w[3] + w[7]),
                (w[0] - w[4] + w[3] - w[7], w[1] - w[5] - w[2] + w[6]),
                (w[0] + w[4] - w[2] - w[6], w[1] + w[5] - w[3] - w[7]),
                (w[0] - w[4] - w[3] + w[7], w[1] - w[5] + w[2] - w[6]),
            ]
        for q, (real, imaginary) in enumerate(outputs):
            store(b.bins, _packed(real, imaginary), first + q * size)


def _energies(b: Any, points: int) -> None:
    """Replace bins 1 to points - 1 by the energies of the real samples' spectrum."""
    w = b.w
    with loop(("k", points // 2)) as k:
        lower, upper = b.bins[k + 1], b.bins[points - 1 - k]
        cosine, sine = int64(b.sines[k + 1 + points // 2]), int64(b.sines[k + 1])
        a, c, d, e = _real(lower), _imaginary(lower), _real(upper), _imaginary(upper)
        store(w, _right(a, 2) + _right(d, 2), 0)
        store(w, _right(c, 2) - _right(e, 2), 1)
        store(w, _right(c, 1) + _right(e, 1), 2)
        store(w, _right(d, 1) - _right(a, 1), 3)
        store(w, _right(w[2] * cosine + w[3] * sine, 31), 4)
        store(w, _right(w[3] * cosine - w[2] * sine, 31), 5)
        for sign, place in ((1, k + 1), (-1, points - 1 - k)):
            store(w, w[0] + sign * w[4], 6)
            store(w, w[1] + sign * w[5], 7)
            store(b.bins, w[6] * w[6] + w[7] * w[7], place)


def _side(b: Any, power: int, side: Expr, first: int) -> None:
    """Set _LOW to the sum of a rising side, _SUM to the filter before it."""
    w = b.w
    for cell in (_LOW, _HIGH, _TOTAL):
        store(w, T.int64(0), cell)
    with T.serial(b.edges[side], b.edges[side + 1]) as k:
        weight, energy = T.Cast("int64", b.ramps[k - first]), b.bins[k]
        if power == 2:
            store(w, w[_LOW] + T.bitwise_and(energy, T.int64(0xFFFFFFFF)) * weight, _LOW)
            store(w, w[_HIGH] + _right(energy, 32) * weight, _HIGH)
            store(w, w[_TOTAL] + energy, _TOTAL)
        else:
            store(w, energy, _SUM)
            _root(b)
            store(w, w[_LOW] + w[_SUM] * weight, _LOW)
            store(w, w[_TOTAL] + w[_SUM] * T.int64(1 << 16), _TOTAL)
    if power == 2:
        store(w, _right(w[_LOW], 16) + w[_HIGH] * T.int64(1 << 16), _LOW)
    store(w, w[_BEFORE] + w[_TOTAL] - w[_LOW], _SUM)


def _normalize(b: Any) -> None:
    """Set _BITS to the bits of _SUM."""
    store(b.w, T.int64(0), _BITS)
    with loop(("bit", 63)) as bit:
        store(b.w, b.w[_BITS] + T.Cast("int64", _right(b.w[_SUM], bit) > T.int64(0)), _BITS)


def _line(b: Any, first: int, lowest: int) -> None:
    """Set _HIGH to the line at the mantissa _WORK in the table from `first` on; the first entry is for `lowest`."""
    w, entry = b.w, T.Cast("int32", _right(b.w[_WORK], 25)) + (first - lowest)
    with position("entry", entry) as at:
        rise = int64(b.table[at + 1] - b.table[at]) * T.bitwise_and(w[_WORK], T.int64((1 << 25) - 1))
        store(w, int64(b.table[at]) + _right(rise, 25), _HIGH)


def _root(b: Any) -> None:
    """Replace _SUM by its square root."""
    w = b.w
    _normalize(b)
    store(w, T.bitwise_and(T.int64(62) - w[_BITS], T.int64(-2)), _BITS)  # the shift
    mantissa = _right(T.shift_left(w[_SUM], w[_BITS]), 30)
    store(w, T.max(mantissa, T.int64(32 << 25)), _WORK)  # 0 has no bits; its root is shifted out
    _line(b, 65, 32)
    store(w, T.shift_right(w[_HIGH], _right(w[_BITS], 1)), _SUM)


def _add_offset(b: Any, power: int, filter_: Expr, mels: int) -> None:
    """Add the offset of a filter to _SUM; _TOTAL becomes the shift to the right that this needs."""
    w = b.w
    mantissa = int64(b.offset[0, filter_])
    store(w, int64(b.offset[1, filter_]) + w[_SHIFT] * T.int64(power), _WORK)
    store(w, T.max(w[_WORK] - T.int64(31), T.int64(0)), _TOTAL)
    left = T.max(T.min(w[_WORK], T.int64(31)), T.int64(0))
    right = T.max(T.min(T.int64(0) - w[_WORK], T.int64(31)), T.int64(0))
    added = T.shift_right(T.shift_left(mantissa, left), right)
    store(w, T.shift_right(w[_SUM], T.min(w[_TOTAL], T.int64(63))) + added, _SUM)


def _logarithm(b: Any, op: Any, filter_: Expr) -> None:
    """Store the result of a filter from _SUM; _TOTAL is the shift of an offset."""
    w = b.w
    _normalize(b)
    wide = w[_TOTAL] if _has_offset(b) else T.int64(0)
    store(w, w[_SHIFT] * T.int64(op.power) - wide, _TOTAL)
    store(w, _right(T.shift_left(w[_SUM], T.int64(63) - w[_BITS]), 31), _WORK)
    store(w, T.max(w[_WORK], T.int64(64 << 25)), _WORK)
    _line(b, 0, 64)
    value = (w[_BITS] - T.int64(1) - w[_TOTAL]) * T.int64(1 << 16) + w[_HIGH]
    value = select(w[_SUM] > T.int64(0), value, T.int64(-(1 << 30))) + int64(b.bias[filter_])
    store(b.y, T.Cast("int32", T.max(value, T.int64(op.floor))), filter_)


def _has_offset(b: Any) -> bool:
    return hasattr(b, "offset")


def _real(value: Expr) -> Expr:
    """Return the lower 32 bits, with their sign."""
    return T.Cast("int64", T.Cast("int32", value))


def _imaginary(value: Expr) -> Expr:
    return _right(value, 32)


def _packed(real: Expr, imaginary: Expr) -> Expr:
    return T.bitwise_or(imaginary * T.int64(1 << 32), T.bitwise_and(real, T.int64(0xFFFFFFFF)))


def _right(value: Expr, bits: Expr) -> Expr:
    """Return a 64-bit value shifted to the right with its sign."""
    return T.shift_right(value, int64(bits))


def mel_features(view: LayerView, structure: tuple[int, ...]) -> Lowering:
    """Return a block for each frame; `structure` is the shape of the C structure."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels, depth = view.constant("weights").shape
    step = int(is_diagonal(x.shape, (channels, depth)))
    frames = prod(x.shape[:-1])

    def meaning(b: Any) -> None:
        with loop(("c", channels)) as c:
            store(b.sum, b.bias[c], 0)
            with loop(("m", depth)) as m:
                store(b.sum, b.sum[0] + int64(b.x[c * step + m]) * int64(b.weights[c, m]), 0)
            shifted = T.shift_right(b.sum[0], int64(b.right_shift[c]))
            store(b.y, T.Cast(y.dtype, T.max(T.min(shifted, T.int64(op.high)), T.int64(op.low))), c)

    constants = (
        Operand("weights", (channels, depth), "int16"),
        Operand("bias", (channels,), "int64"),
        Operand("right_shift", (channels,), "int32"),
        Operand("mel_features", structure, "int32"),
    )
    operands = (
        Operand("x", (x.shape[-1],), "int32"),
        *constants,
        Operand("y", (channels,), y.dtype, "w"),
        Operand("sum", (1,), "int64", "rw"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.weights, b.bias, b.right_shift, b.y, b.mel_features]

    function = f"fl_mel_features_{16 if y.dtype == 'int16' else 8}"
    frame = Block("frame", operands, meaning, function, arguments)
    with Function("mel_features") as f:
        source = f.input(0, (frames, x.shape[-1]), "int32")
        buffers = {c.name: f.constant(c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, (frames, channels), y.dtype)
        cell = f.scratch("sum", (1,), "int64")
        with f.loop(("n", frames)) as (n,):
            f.place(frame, x=(source, n, 0), y=(out, n, 0), sum=cell, **buffers)
    return f.lowering()
