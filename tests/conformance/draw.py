"""A source of random choices for layers, and layers on their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.ir.graph import Layer, LayerOp, LayerView, Layout, Tensor


@dataclass
class Draw:
    """Choices that `seed` decides; `dtype` is that of the activations."""

    seed: int
    dtype: str = "int8"
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def integer(self, low: int, high: int) -> int:
        """Both bounds included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, *values: Any) -> Any:
        return values[self.integer(0, len(values) - 1)]

    def array(self, shape: tuple[int, ...], dtype: str = "") -> np.ndarray:
        """Any values of an integer type; for float32, halves and what lies near them."""
        if dtype == "float32":
            near = self.rng.choice(np.array([0, 1e-8, -1e-8, 0.003], np.float32), shape)
            return (self.rng.integers(-300, 301, shape) * 0.25 + near).astype(np.float32)
        low, high = bounds(dtype or self.dtype)
        return self.rng.integers(low, high + 1, shape).astype(dtype or self.dtype)

    def zero_point(self, dtype: str = "") -> int:
        """Mostly near the middle of the type; one in five is one of its bounds. int16 has none."""
        if (dtype or self.dtype) == "int16":
            return 0
        low, high = bounds(dtype or self.dtype)
        middle = (low + high) // 2
        if self.integer(0, 4) == 0:
            return int(self.choose(low, high))
        return self.integer(middle - 60, middle + 60)

    def clamped(self) -> dict[str, int]:
        """Output zero point and bounds: all of the type, or those of a fused RELU or RELU6."""
        (low, high), zero_point = bounds(self.dtype), self.zero_point()
        floor = self.choose(low, low, min(zero_point, 100))
        return {
            "output_zero_point": zero_point,
            "act_min": floor,
            "act_max": self.choose(high, high, high, min(max(zero_point, floor) + 20, high)),
        }

    def layout(self) -> str:
        return str(self.choose("NHWC", "NCHW"))

    def weight_type(self, *, shifted: bool = False) -> tuple[str, int]:
        """Type and zero point: uint8 goes with uint8 activations, int8 weights have no zero point unless `shifted`."""
        dtype = "int8" if self.dtype != "uint8" else str(self.choose("int8", "uint8", "uint8"))
        if dtype == "uint8":
            return dtype, self.zero_point("uint8")
        return dtype, self.zero_point("int8") if shifted and self.integer(0, 2) == 0 else 0

    def channel_constants(self, units: int, depth: int) -> dict[str, np.ndarray]:
        """Bias, multiplier and shift that spread sums of `depth` products over the output's range."""
        if self.dtype == "int16":
            return {
                "bias": self.rng.integers(-(1 << 33), 1 << 33, units),
                "multiplier": self.rng.integers(1 << 30, 1 << 31, units).astype(np.int32),
                "shift": self.rng.integers(-14, -7, units).astype(np.int32),
            }
        middle = -int(np.log2(max(depth, 1)) / 2 + 6)
        return {
            "bias": self.rng.integers(-4000, 4000, units).astype(np.int32),
            "multiplier": self.rng.integers(1 << 30, 1 << 31, units).astype(np.int32),
            "shift": self.rng.integers(middle - 2, middle + 3, units).astype(np.int32),
        }

    def multiplier(self, low: int, high: int) -> tuple[int, int]:
        """A fixed-point multiplier and its shift in [low, high]."""
        return self.integer(1 << 30, (1 << 31) - 1), self.integer(low, high)

    def shape(self) -> tuple[int, ...]:
        return tuple(self.choose(1, 2, 3, 4, 5, 6, 9) for _ in range(self.integer(1, 4)))

    def pair(self, full: tuple[int, ...], axes: int = 3, front: int = 2) -> list[tuple[int, ...]]:
        """Two shapes that broadcast: 1 for one in `axes` + 1 axes; one second in `front` + 1 lacks some in front."""
        shapes = [list(full), list(full)]
        for axis in range(len(full)):
            if self.integer(0, axes) == 0:
                shapes[self.integer(0, 1)][axis] = 1
        if self.integer(0, front) == 0:
            shapes[1] = shapes[1][self.integer(0, len(full) - 1) :]
        return [tuple(shape) for shape in shapes]


def bounds(dtype: str) -> tuple[int, int]:
    """Lowest and highest value of an integer type, or of bool."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def middle(dtype: str) -> int:
    """The zero point that leaves as much room on both sides."""
    return 128 if dtype == "uint8" else 0


def whole_range(dtype: str) -> dict[str, int]:
    """Output zero point and bounds that cut nothing off."""
    low, high = bounds(dtype)
    return {"output_zero_point": middle(dtype), "act_min": low, "act_max": high}


def scaled(first: tuple[int, int], second: tuple[int, int], output: tuple[int, int]) -> dict[str, Any]:
    """The fields of an operator of two inputs that have the multipliers and shifts of both and of the output."""
    scales = {"multipliers": (first[0], second[0]), "shifts": (first[1], second[1])}
    return {**scales, "output_multiplier": output[0], "output_shift": output[1]}


def image(name: str, shape: tuple[int, ...], dtype: str, layout: str = "") -> Tensor:
    return Tensor(name=name, shape=shape, dtype=dtype, layout=layout)  # type: ignore[arg-type]


def view(
    op: LayerOp,
    inputs: list[Tensor],
    output: Tensor,
    constants: Mapping[str, np.ndarray] | None = None,
    state: tuple[Tensor, ...] = (),
) -> LayerView:
    """A layer on its own; `constants` by role."""
    names = {role: f"layer.{role}" for role in constants or {}}
    layer = Layer(
        index=0,
        name="layer",
        op=op,
        inputs=tuple(t.name for t in inputs),
        outputs=(output.name,),
        state=tuple(t.name for t in state),
        constants=names,
    )
    arrays = {names[role]: array for role, array in (constants or {}).items()}
    return LayerView(layer, {t.name: t for t in [*inputs, output, *state]}, arrays)


def with_constants(layer: LayerView, **arrays: np.ndarray) -> LayerView:
    """The layer with other constants, by role."""
    changed = {layer.layer.constants[role]: array for role, array in arrays.items()}
    return LayerView(layer.layer, layer.tensors, {**layer.arrays, **changed})


def without_bias(layer: LayerView) -> LayerView:
    constants = {role: name for role, name in layer.layer.constants.items() if role != "bias"}
    return LayerView(layer.layer.model_copy(update={"constants": constants}), layer.tensors, layer.arrays)


def as_converted(layer: LayerView) -> LayerView:
    """The layer without weights of -128, which TFLite's converter does not write and kernels pack in other ways."""
    weights = layer.constant("weights")
    return with_constants(layer, weights=np.maximum(weights, bounds(str(weights.dtype))[0] + 1).astype(weights.dtype))


def scaled_little(layer: LayerView) -> LayerView:
    """The layer with small sums, of which outputs have from half to twice as much."""
    weights, bias = layer.constant("weights"), layer.constant("bias")
    ones = layer.op.weight_zero_point + weights.astype(np.int32) % 2
    shift = np.arange(len(bias), dtype=np.int32) % 3 - 1
    return with_constants(layer, weights=ones.astype(weights.dtype), bias=bias // 64, shift=shift[::-1].copy())


def with_op(layer: LayerView, **fields: Any) -> LayerView:
    """The layer with other fields of its operator."""
    op = layer.op.model_copy(update=fields)
    return LayerView(layer.layer.model_copy(update={"op": op}), layer.tensors, layer.arrays)


def with_layouts(layer: LayerView, **layouts: str) -> LayerView:
    """The layer with other layouts of its tensors, by tensor name."""
    changed = {
        name: layer.tensors[name].model_copy(update={"layout": Layout(layout)}) for name, layout in layouts.items()
    }
    return LayerView(layer.layer, {**layer.tensors, **changed}, layer.arrays)
