"""SVDF: a fully connected layer in time, of rank 1 or more, that remembers what its features were before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from stages.messages.naming import named
from stages.operators.declaration import OneOperatorModel, Operator, Table
from stages.operators.layer import Clamped, LayerOp, Rounding, Shifted
from stages.operators.operation import Operation, Refused, Shape, listed

if TYPE_CHECKING:
    from stages.graph import LayerView, Tensor
    from stages.models.operators import OneOperator
    from stages.models.tflite_writer import Tensor as FileTensor
    from stages.operators.layer import Array

_TABLE = Table("SVDFOptions", "rank:int activation:byte asymmetric_quantize_inputs:bool")
_RELU = 1
# Types of the weights of features and of time, of the bias and of the state, by the type of the data.
_TYPES = {"int8": ("int8", "int16", "int32", "int16"), "float32": ("float32",) * 4}
_PARTS = ("the weights of its features", "the weights of time", "its bias", "its state")


def _svdf(operation: Operation) -> list[Shape]:
    data, feature, time, state = (operation.input(position) for position in (0, 1, 2, 4))
    for tensor in (data, feature, time, state):
        if len(tensor.shape) != 2:
            raise Refused(f"has {named(tensor)} {listed(tensor.shape)}; it must have 2 axes")
    (batch, depth), (filters, wide), (rows, memory) = data.shape, feature.shape, time.shape
    rank = operation.options(_TABLE)["rank"]
    if depth != wide or filters != rows:
        shapes = ", ".join(f"{named(tensor)} {listed(tensor.shape)}" for tensor in (data, feature, time))
        raise Refused(f"has shapes that do not fit: {shapes}; features x depth and features x memory are wanted")
    if rank < 1 or filters % rank:
        raise Refused(f"has {filters} features, no multiple of its rank {rank}")
    if state.shape != (batch, memory * filters):
        wanted = listed((batch, memory * filters))
        raise Refused(f"has the state {named(state)} {listed(state.shape)}; it remembers {wanted}")
    bias = operation.inputs[3]
    if bias is not None and bias.shape != (filters // rank,):
        raise Refused(f"has the bias {named(bias)} {listed(bias.shape)} for {filters // rank} units")
    return [(batch, filters // rank)]


def _check(operation: Operation) -> None:
    """Types that go together, constants that are constant, and scales where there are integers."""
    data = operation.input(0)
    if data.dtype == "int8" and operation.options(_TABLE)["activation"] != _RELU:
        raise Refused("has another fused activation than RELU, which LiteRT demands of it on integers")
    for position, (what, dtype) in enumerate(zip(_PARTS, _TYPES[data.dtype], strict=True), 1):
        tensor = operation.inputs[position]
        if tensor is None:
            continue
        if tensor.dtype != dtype:
            raise Refused(f"has {what} of {tensor.dtype} in {named(tensor)}; with {data.dtype} data they are {dtype}")
        if position < 4 and tensor.data is None:
            raise Refused(f"computes {what} {named(tensor)}; they must be a constant")
        if data.dtype == "int8" and position != 3 and (tensor.scale.size != 1 or not tensor.scale.all()):
            raise Refused(f"has {tensor.scale.size} scales for {what} in {named(tensor)}; it takes one")
        if tensor.zero_point.any():
            raise Refused(f"has the zero point {int(tensor.zero_point[0])} in {named(tensor)}; it must be 0")


class Svdf(Clamped):
    """With s the state, int16[batch, features, memory], every row of which first moves left by one:

      s[n, f, last] = M(sum over k of (x[n, k] - input_zero_point) * feature[f, k], feature_multiplier, feature_shift),
                      saturated
      y[n, u]       = M(bias[u] + sum over r, m of s[n, u * rank + r, m] * time[u * rank + r, m], multiplier, shift)
                      + output_zero_point

    Constants: feature int8[features, depth],
    time int16[features, memory], bias int32[units] (absent: zero). Of the fused RELU, which it demands, the
    reference makes nothing.
    """

    op: Literal["svdf"] = "svdf"
    rank: int
    depth: int
    memory: int
    input_zero_point: int
    feature_multiplier: int
    feature_shift: int
    multiplier: int
    shift: int
    rounding: Rounding = "double"

    def products(self, out: Tensor) -> int:
        return out.elements * self.rank * (self.depth + self.memory)

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """Its kernels read and write int8 alone."""
        return None if any((*inputs, output)) else Shifted(self)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        import numpy as np

        from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier, wrap

        feature, time = (view.constant(role).astype(np.int64) for role in ("feature", "time"))
        sums = wrap((inputs[0].astype(np.int64) - self.input_zero_point) @ feature.T)
        made = multiply_by_quantized_multiplier(sums, self.feature_multiplier, self.feature_shift, self.rounding)
        memory = _remembered(states[0], time.shape, np.clip(made, -(1 << 15), (1 << 15) - 1))
        total = (memory * time).sum(axis=2).reshape(len(memory), -1, self.rank).sum(axis=2)
        total = wrap(total + (view.constant("bias").astype(np.int64) if view.has("bias") else 0))
        scaled = multiply_by_quantized_multiplier(total, self.multiplier, self.shift, self.rounding)
        return self.clamped(view, scaled), [memory.astype(np.int16).reshape(states[0].shape)]


class FloatSvdf(LayerOp):
    """As Svdf in float32, without scales, then clamped: `low` and `high` are the fused activation's, None for none."""

    op: Literal["float_svdf"] = "float_svdf"
    rank: int
    depth: int
    memory: int
    low: float | None = None
    high: float | None = None

    @property
    def named(self) -> str:
        return "svdf"

    def products(self, out: Tensor) -> int:
        return out.elements * self.rank * (self.depth + self.memory)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Sums in the order of their indices, every one rounded to float32."""
        import numpy as np

        feature, time = view.constant("feature"), view.constant("time")
        made = np.zeros((len(inputs[0]), len(feature)), np.float32)
        for k in range(self.depth):
            made += inputs[0][:, k, None] * feature[None, :, k]
        memory = _remembered(states[0], time.shape, made)
        bias = view.constant("bias") if view.has("bias") else np.zeros(len(feature) // self.rank, np.float32)
        total = np.repeat(bias[None], len(memory), axis=0)
        for r in range(self.rank):
            part = np.zeros_like(total)
            for m in range(self.memory):
                part += memory[:, r :: self.rank, m] * time[None, r :: self.rank, m]
            total += part
        return np.clip(total, self.low, self.high), [memory.reshape(states[0].shape)]


def _remembered(state: Array, shape: Shape, newest: Array) -> Array:
    """The state as [batch, features, memory], one step older, with `newest` as its last column."""
    import numpy as np

    memory = state.astype(newest.dtype).reshape(-1, *shape)
    return np.concatenate([memory[:, :, 1:], newest[:, :, None]], axis=2)


def _model(one: OneOperator, x: FileTensor) -> FileTensor:
    """Features use the state's 16 bits as results use the output's 8, and time weighs so that sums stay as large."""
    import numpy as np

    from stages.models.exact import random_bytes

    spec = one.spec
    units = spec.out_channels or 1
    shape = (units * spec.rank, x.shape[-1])
    feature, _, options = one.weighted(shape, 0, x.shape[-1], per_channel=False)
    raw = random_bytes(spec.seed, "time", 2 * shape[0] * spec.memory).view("<u2").astype(np.int64) - (1 << 15)
    time = np.maximum(raw, 1 - (1 << 15)).reshape(shape[0], spec.memory)
    time_scale = np.float32(3**0.5 / (1 << 15) / (spec.rank * spec.memory) ** 0.5)  # of uniform values
    scales, out, state_scale = None, options["out"], np.float32(1)
    if one.quantized:
        state_scale = np.float32(out[0] / 256)
        scales = (float(options["weight_scale"][0]), float(time_scale), float(state_scale))
    weighed = time.astype(np.int16) if one.quantized else (time * time_scale).astype(np.float32)
    bias = one.bias(units, np.full(units, float(state_scale) * float(time_scale))) if spec.bias else None
    fused = "relu" if one.quantized else spec.activation
    return one.builder.svdf(
        x, feature, weighed, bias, rank=spec.rank, scales=scales, activation=fused, out=out, name=spec.op
    )


OPERATORS = (
    Operator(
        "SVDF",
        _svdf,
        (5, 5),
        optional=(3,),
        table=_TABLE,
        types=("int8", "float32"),
        own=(1, 2, 3),
        state=(4,),
        layers=(Svdf, FloatSvdf),
        model=OneOperatorModel(
            _model, frozenset({"out_channels", "rank", "memory", "bias", "activation", "output"}), ("out_channels",)
        ),
        limits="2 axes; with int8 data weights of time and state are int16, and a RELU is fused, which does nothing",
        check=_check,
        version=3,
    ),
)
