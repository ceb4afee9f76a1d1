"""SVDF on int8: code that the kernels of all families share (include/svdf_image.h)."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.lstm import in_chunks
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, output, requantize, widen
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

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


Expr = Any  # a TIR expression or a Python int


@dataclass(frozen=True)
class _Call:
    """The C function ('' for none), the shape of its structure, and its extra arguments."""

    function: str = ""
    structure: tuple[int, ...] = ()
    bounds: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class _Types:
    """Types of sums, data, features, time and state."""

    sums: str
    data: str
    feature: str
    time: str
    state: str


_INTEGERS, _FLOATS = _Types("int32", "int8", "int8", "int16", "int16"), _Types(*("float32",) * 5)
_NARROW = _Types("int32", "int8", "int8", "int8", "int8")


def svdf(view: LayerView, function: str, structure: tuple[int, ...]) -> Lowering:
    """Return SVDF with int8 data; weights of time and the state are int16."""
    return _svdf(view, _Call(function, structure), _INTEGERS, *_rows(view), *_scaled(view))


def narrow_svdf(view: LayerView) -> Lowering:
    """Return SVDF with int8 data, weights of time and state, as loops without a C function."""
    return _svdf(view, _Call(), _NARROW, *_rows(view), *_scaled(view))


def _rows(view: LayerView) -> tuple[tuple[Operand, ...], Callable[[Any, Expr], None]]:
    """Return features as rows, and the sum of one."""
    zero_point, shape = view.op.input_zero_point, (view.outputs[0].shape[1] * view.op.rank, view.op.depth)

    def summed(b: Any, f: Expr) -> None:
        store(b.acc, 0, 0)
        with loop(("k", view.op.depth)) as k:
            store(b.acc, b.acc[0] + (widen(b.x[k]) - zero_point) * widen(b.feature[f, k]), 0)

    return (Operand("feature", shape, "int8"),), summed


def svdf_of_four(view: LayerView, function: str, structure: tuple[int, ...], chunk: int, words: int) -> Lowering:
    """Return SVDF with features in fours and chunks (include/svdf_image.h).

    The C function gets `words` words of scratch.
    """
    depth, fours = view.op.depth, -(-view.outputs[0].shape[1] * view.op.rank // 4)
    chunked, rest = divmod(depth, chunk)

    def summed(b: Any, f: Expr) -> None:
        store(b.acc, b.feature_bias[f], 0)
        for first, chunks, elements in ((0, chunked, chunk), (chunked, 1, rest)):
            if chunks * elements:
                with loop((f"c{first}", chunks), (f"e{first}", elements)) as (c, e):
                    weight = b.feature[T.floordiv(f, 4), first + c, T.floormod(f, 4), e]
                    store(b.acc, b.acc[0] + widen(b.x[(first + c) * chunk + e]) * widen(weight), 0)

    features = (
        Operand("feature", (fours, -(-depth // chunk), 4, chunk), "int8"),
        Operand("feature_bias", (4 * fours,), "int32"),
    )
    return _svdf(view, _Call(function, structure), _INTEGERS, features, summed, *_scaled(view), words)


def _scaled(view: LayerView) -> tuple[Callable[[Expr], Expr], Callable[[Expr], Expr]]:
    """Return the scaling of a feature's sum and of a unit's sum."""
    op, state = view.op, view.states[0].dtype
    low, high = (-128, 127) if state == "int8" else (-(1 << 15), (1 << 15) - 1)

    def newest(total: Expr) -> Expr:
        scaled = clamp(requantize(total, op.feature_multiplier, op.feature_shift, op.rounding), low, high)
        return T.Cast(state, scaled + op.zero_point_of_state if op.zero_point_of_state else scaled)

    def result(total: Expr) -> Expr:
        return output(view, requantize(total, op.multiplier, op.shift, op.rounding))

    return newest, result


def float_svdf(view: LayerView, function: str, structure: tuple[int, ...]) -> Lowering:
    """Return SVDF in float32. Bounds are infinite without a fused activation."""
    op = view.op
    low, high = (T.float32(-np.inf if op.low is None else op.low), T.float32(np.inf if op.high is None else op.high))

    def summed(b: Any, f: Expr) -> None:
        store(b.acc, T.float32(0), 0)
        with loop(("k", op.depth)) as k:
            store(b.acc, b.acc[0] + b.x[k] * b.feature[f, k], 0)

    def clamped(total: Expr) -> Expr:
        return T.max(T.min(total, high), low)

    features = (Operand("feature", (view.outputs[0].shape[1] * op.rank, op.depth), "float32"),)
    call = _Call(function, structure, (low, high))
    return _svdf(view, call, _FLOATS, features, summed, lambda total: total, clamped)


def _svdf(
    view: LayerView,
    call: _Call,
    types: _Types,
    features: tuple[Operand, ...],
    summed: Callable[[Any, Expr], None],
    newest: Callable[[Expr], Expr],
    result: Callable[[Expr], Expr],
    words: int = 0,
) -> Lowering:
    """Build SVDF from `summed`, `newest` and `result`.

    `summed` leaves the sum of a feature in acc, from the constants `features`. `newest` and `result` map sums to stored
    values.
    """
    op, (batch, units) = view.op, view.outputs[0].shape
    filters, last = units * op.rank, op.memory - 1

    def wide(value: Expr) -> Expr:
        return value if types is _FLOATS else widen(value)

    def remembered(value: Expr) -> Expr:
        return wide(value) - op.zero_point_of_state if types is _NARROW else wide(value)

    def meaning(b: Any) -> None:
        with loop(("f", filters)) as f:
            summed(b, f)
            if last:
                with loop(("m", last)) as m:
                    store(b.state, b.state[f * op.memory + m + 1], f * op.memory + m)
            store(b.state, newest(b.acc[0]), f * op.memory + last)
        with loop(("u", units)) as u:
            store(b.acc, b.bias[u], 0)
            with loop(("r", op.rank)) as r:
                store(b.part, T.Cast(types.sums, 0), 0)
                with loop(("m", op.memory)) as m:
                    row = u * op.rank + r
                    store(b.part, b.part[0] + remembered(b.state[row * op.memory + m]) * wide(b.time[row, m]), 0)
                store(b.acc, b.acc[0] + b.part[0], 0)
            store(b.y, result(b.acc[0]), u)

    constants = (
        *features,
        Operand("time", (filters, op.memory), types.time),
        Operand("bias", (units,), types.sums),
        *([Operand("svdf", call.structure, "int32")] if call.function else ()),
    )
    cells = tuple(Operand(name, (1,), types.sums, "rw") for name in ("acc", "part"))
    scratch = (Operand("scratch", (words,), "int32", "rw"),) if words else ()
    operands = (
        Operand("x", (op.depth,), types.data),
        *constants,
        Operand("state", (filters * op.memory,), types.state, "rw"),
        Operand("y", (units,), types.data, "w"),
        *cells,
        *scratch,
    )

    def arguments(b: Any) -> list[Any]:
        read = [getattr(b, operand.name) for operand in constants[:-1]]
        return [b.x, *read, b.state, b.y, *([b.scratch] if words else ()), *call.bounds, b.svdf]

    row = Block("row", operands, meaning, call.function, arguments if call.function else None)
    with StatefulFunction("svdf") as f:
        x = f.input(0, (batch, op.depth), types.data)
        buffers = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        state = f.state(0, (batch, filters * op.memory), types.state)
        y = f.output(0, (batch, units), types.data)
        scratch_buffers = {
            operand.name: f.scratch(operand.name, operand.shape, operand.dtype) for operand in (*cells, *scratch)
        }
        with f.loop(("n", batch)) as (n,):
            f.place(row, x=(x, n, 0), state=(state, n, 0), y=(y, n, 0), **buffers, **scratch_buffers)
    return f.lowering()
