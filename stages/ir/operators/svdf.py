"""SVDF: a fully connected layer with a memory of earlier features, of rank 1 or more."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from stages.ir.arithmetic.exact import random_bytes
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, wrap
from stages.ir.arithmetic.multipliers import Fixed, quantize_multiplier
from stages.ir.layers import Array, Clamped, LayerOp, LayerView, Rounding, Shifted, Tensor
from stages.ir.model_info import FileTensor, TensorInfo
from stages.ir.naming import named
from stages.ir.operators.declaration import Legalization, LiteRT, Operator, Quantization, Tensors, Weights
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_TABLE = Table("SVDFOptions", "rank:int activation:byte asymmetric_quantize_inputs:bool")
_RELU = 1
# Types of the weights of features and of time, of the bias and of the state, by the type of the data.
_TYPES = {"int8": ("int8", "int16", "int32", "int16"), "float32": ("float32",) * 4}
_NARROW = ("int8", "int8", "int32", "int8")  # TFLM's form, which LiteRT does not have
_INPUT_LABELS = ("the weights of its features", "the weights of time", "its bias", "its state")


def _svdf(operation: Operation) -> list[Shape]:
    data, feature, time, state = (operation.input(position) for position in (0, 1, 2, 4))
    for tensor in (data, feature, time, state):
        if len(tensor.shape) != 2:
            raise Refused(f"has {named(tensor)} {listed(tensor.shape)}; it must have 2 axes")
    (batch, depth), (filters, wide), (rows, memory) = data.shape, feature.shape, time.shape
    rank = operation.options(_TABLE)["rank"]
    if depth != wide or filters != rows:
        shapes = ", ".join(f"{named(tensor)} {listed(tensor.shape)}" for tensor in (data, feature, time))
        raise Refused(f"has shapes that do not fit: {shapes}; they must be features x depth and features x memory")
    if rank < 1 or filters % rank:
        raise Refused(f"has {filters} features, which is not a multiple of its rank {rank}")
    if state.shape != (batch, memory * filters):
        wanted = listed((batch, memory * filters))
        raise Refused(f"has the state {named(state)} {listed(state.shape)}; it must be {wanted}")
    bias = operation.inputs[3]
    if bias is not None and bias.shape != (filters // rank,):
        raise Refused(f"has the bias {named(bias)} {listed(bias.shape)}, which does not fit {filters // rank} units")
    return [(batch, filters // rank)]


def _check(operation: Operation) -> None:
    """Check types, constants and scales."""
    data, narrow = operation.input(0), _is_narrow(operation)
    if data.dtype == "int8" and operation.options(_TABLE)["activation"] != _RELU:
        raise Refused("has a fused activation other than RELU, which LiteRT requires on integers")
    types = _NARROW if narrow else _TYPES[data.dtype]
    for position, (description, dtype) in enumerate(zip(_INPUT_LABELS, types, strict=True), 1):
        tensor = operation.inputs[position]
        if tensor is None:
            continue
        if tensor.dtype != dtype:
            others = f"{data.dtype} data" + (" and int8 weights of time" if narrow else "")
            raise Refused(f"has {description} of {tensor.dtype} in {named(tensor)}; with {others} it must be {dtype}")
        if position < 4 and tensor.data is None:
            raise Refused(f"computes {description} {named(tensor)}; it must be a constant")
        if data.dtype == "int8" and position != 3 and (tensor.scale.size != 1 or not tensor.scale.all()):
            raise Refused(f"has {tensor.scale.size} scales for {description} in {named(tensor)}; it must have one")
        if tensor.zero_point.any() and not (narrow and position == 4):
            raise Refused(f"has the zero point {int(tensor.zero_point[0])} in {named(tensor)}; it must be 0")


def _is_narrow(operation: Operation) -> bool:
    """Return whether time weights and state have 8 bits."""
    return (operation.input(0).dtype, operation.input(2).dtype) == ("int8", "int8")


class Svdf(Clamped):
    """SVDF of int8.

    With s the state, int16[batch, features, memory], whose rows first shift left by one:

      s[n, f, last] = M(sum over k of (x[n, k] - input_zero_point) * feature[f, k], feature_multiplier, feature_shift),
                      saturated
      y[n, u]       = M(bias[u] + sum over r, m of s[n, u * rank + r, m] * time[u * rank + r, m], multiplier, shift)
                      + output_zero_point

    Constants: feature int8[features, depth], time int16[features, memory], bias int32[units] (absent: zero). The
    reference requires a fused RELU but ignores it.
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

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of features and time."""
        return out.elements * self.rank * (self.depth + self.memory)

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """None: its kernels take int8 only."""
        return None if any((*inputs, output)) else Shifted(self)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the output and the new state."""
        bias = view.constant("bias") if view.has("bias") else None
        scaled, state = self.step(inputs[0], view.constant("feature"), view.constant("time"), bias, states[0])
        return self.clamped(view, scaled), [state]

    def step(self, x: Array, feature: Array, time: Array, bias: Array | None, state: Array) -> tuple[Array, Array]:
        """Return the output int64[batch, units] before zero point and clamp, and the new state."""
        feature, time = feature.astype(np.int64), time.astype(np.int64)
        sums = wrap((x.astype(np.int64) - self.input_zero_point) @ feature.T)
        scaled = multiply_by_quantized_multiplier(sums, self.feature_multiplier, self.feature_shift, self.rounding)
        limits, zero = np.iinfo(state.dtype), self.zero_point_of_state
        newest = (np.clip(scaled, limits.min, limits.max) + zero).astype(state.dtype).astype(np.int64)
        memory = _remembered(state, time.shape, newest)
        total = ((memory - zero) * time).sum(axis=2).reshape(len(memory), -1, self.rank).sum(axis=2)
        total = wrap(total + (bias.astype(np.int64) if bias is not None else 0))
        result = multiply_by_quantized_multiplier(total, self.multiplier, self.shift, self.rounding)
        return result, memory.astype(state.dtype).reshape(state.shape)

    @property
    def zero_point_of_state(self) -> int:
        """The zero point of the state, 0 in 16 bits."""
        return 0


class NarrowSvdf(Svdf):
    """As Svdf with state int8 and time int8 (TFLM's svdf_common.cc).

    s holds values plus `state_zero_point`.

    A new value is saturated to int8 before `state_zero_point` is added, and the sum wraps.
    """

    op: Literal["narrow_svdf"] = "narrow_svdf"  # type: ignore[assignment]
    alias: ClassVar[str] = "svdf"
    state_zero_point: int

    @property
    def zero_point_of_state(self) -> int:
        return self.state_zero_point


class FloatSvdf(LayerOp):
    """As Svdf in float32, without scales, then clamped to `low` and `high` (None: no bound)."""

    op: Literal["float_svdf"] = "float_svdf"
    alias: ClassVar[str] = "svdf"
    approximate: ClassVar[bool] = True
    rank: int
    depth: int
    memory: int
    low: float | None = None
    high: float | None = None

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of features and time."""
        return out.elements * self.rank * (self.depth + self.memory)

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the output and the new state; sums in index order, each rounded to float32."""
        feature, time = view.constant("feature"), view.constant("time")
        features = np.zeros((len(inputs[0]), len(feature)), np.float32)
        for k in range(self.depth):
            features += inputs[0][:, k, None] * feature[None, :, k]
        memory = _remembered(states[0], time.shape, features)
        bias = view.constant("bias") if view.has("bias") else np.zeros(len(feature) // self.rank, np.float32)
        total = np.repeat(bias[None], len(memory), axis=0)
        for r in range(self.rank):
            part = np.zeros_like(total)
            for m in range(self.memory):
                part += memory[:, r :: self.rank, m] * time[None, r :: self.rank, m]
            total += part
        return np.clip(total, self.low, self.high), [memory.reshape(states[0].shape)]


def _remembered(state: Array, shape: Shape, newest: Array) -> Array:
    """State as [batch, features, memory], shifted by one step, with `newest` last."""
    memory = state.astype(newest.dtype).reshape(-1, *shape)
    return np.concatenate([memory[:, :, 1:], newest[:, :, None]], axis=2)


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """Scales for which features use the state's 16 bits, and results the output's 8 bits."""
    spec = model.spec
    units = spec.out_channels or 1
    shape = (units * spec.rank, x.shape[-1])
    feature, _, options = model.weighted(shape, 0, x.shape[-1], per_channel=False)
    raw = random_bytes(spec.seed, "time", 2 * shape[0] * spec.memory).view("<u2").astype(np.int64) - (1 << 15)
    time = np.maximum(raw, 1 - (1 << 15)).reshape(shape[0], spec.memory)
    time_scale = np.float32(3**0.5 / (1 << 15) / (spec.rank * spec.memory) ** 0.5)  # of uniform values
    scales, out, state_scale = None, options["out"], np.float32(1)
    if model.quantized:
        state_scale = np.float32(out[0] / 256)
        scales = (float(options["weight_scale"][0]), float(time_scale), float(state_scale))
    time_weights = time.astype(np.int16) if model.quantized else (time * time_scale).astype(np.float32)
    bias = model.bias(units, np.full(units, float(state_scale) * float(time_scale))) if spec.bias else None
    fused = "relu" if model.quantized else spec.activation
    return model.builder.svdf(
        x, feature, time_weights, bias, rank=spec.rank, scales=scales, activation=fused, out=out, name=spec.op
    )


def multipliers(x: float, feature: float, time: float, state: float, out: float) -> tuple[Fixed, Fixed]:
    """Multipliers of a feature's and of a unit's sum, from scales in float32 (svdf.cc)."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        first = np.float32(x) * np.float32(feature) / np.float32(state)
        second = np.float32(state) * np.float32(time) / np.float32(out)
    return quantize_multiplier(float(first)), quantize_multiplier(float(second))


def _narrow(operation: Operation) -> NarrowSvdf:
    """Return the layer of the int8 form."""
    x, feature, time, state = (operation.input(position) for position in (0, 1, 2, 4))
    out = operation.outputs[0]
    scales = [float(tensor.scale[0]) for tensor in (x, feature, time, state, out)]
    first, second = multipliers(*scales)
    return NarrowSvdf(
        rank=operation.options(_TABLE)["rank"],
        depth=feature.shape[1],
        memory=time.shape[1],
        input_zero_point=_zero_point(x),
        state_zero_point=_zero_point(state),
        feature_multiplier=first[0],
        feature_shift=first[1],
        multiplier=second[0],
        shift=second[1],
        output_zero_point=_zero_point(out),
        act_min=-128,
        act_max=127,
    )


def _zero_point(tensor: TensorInfo) -> int:
    return int(tensor.zero_point[0]) if tensor.zero_point.size else 0


def _reference(operation: Operation, *arrays: Array | None) -> Sequence[Array]:
    """Return the output and the new state of the int8 form, which LiteRT refuses."""
    x, feature, time, bias, state = arrays
    assert x is not None and feature is not None and time is not None and state is not None
    op = _narrow(operation)
    scaled, new_state = op.step(x, feature, time, bias, state)
    return [np.clip(scaled + op.output_zero_point, op.act_min, op.act_max).astype(np.int8), new_state]


OPERATORS = (
    Operator(
        "SVDF",
        _svdf,
        Tensors((5, 5), types=("int8", "float32"), optional=(3,), state=(4,)),
        table=_TABLE,
        quantization=Quantization(check=_check),
        weights=Weights(own=(1, 2, 3)),
        legalization=Legalization((Svdf, NarrowSvdf, FloatSvdf)),
        litert=LiteRT(version=3, misjudged={2: ("int8",)}, reference=_reference),
        model=SingleOperatorModel(
            _model, frozenset({"out_channels", "rank", "memory", "bias", "activation", "output"}), ("out_channels",)
        ),
        limits="2 axes; int8 data: time weights and state are int16, and a fused RELU is required but ignored; "
        "int8 time weights and state are computed as in TFLM, since LiteRT lacks them",
    ),
)
