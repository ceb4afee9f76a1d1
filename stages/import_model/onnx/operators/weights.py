"""Weights and biases that are constants, of real numbers and of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.onnx.values import Array, Held, Stored
from stages.ir.models.onnx_names import LOWERED
from stages.ir.operators.operation import Refused, listed


@dataclass(frozen=True)
class Weights:
    """values, float32 or int8; scale (one, or one for each output channel) and zero point of integers.

    values are int16 where each channel has a zero point of its own, less which they are not int8 (`parts`).
    """

    values: Array
    scale: Array | None = None
    zero_point: int = 0

    @classmethod
    def of(cls, stored: Stored, axis: int) -> Weights:
        """Those of a constant, whose output channels are along `axis`. Refused for several zero points."""
        if stored.scale is None:
            return cls(stored.values)
        if stored.scale.size > 1 and stored.axis % stored.values.ndim != axis:
            raise Refused(f"has weights with scales along axis {stored.axis}; output channels are along axis {axis}")
        if stored.scale.size not in (1, stored.values.shape[axis]):
            raise Refused(
                f"has weights {listed(stored.values.shape)} with {stored.scale.size} scales along axis {axis}"
            )
        if stored.values.dtype not in (np.int8, np.uint8):
            raise Refused(f"has weights of {stored.values.dtype}; int8 and uint8 are supported")
        values, zero_points = stored.values, np.asarray(stored.zero_point).astype(np.int64)
        if values.dtype == np.uint8:
            values, zero_points = (values.astype(np.int16) - LOWERED).astype(np.int8), zero_points - LOWERED
        if zero_points.min() != zero_points.max():
            along = (1,) * axis + (-1,) + (1,) * (values.ndim - axis - 1)
            moved = values.astype(np.int64) - zero_points.reshape(along)
            whole = moved.min() >= -128 and moved.max() <= 127
            values, zero_points = moved.astype(np.int8 if whole else np.int16), np.zeros(1, np.int64)
        return cls(values, stored.scale.reshape(-1).astype(np.float32), int(zero_points.reshape(-1)[0]))

    def with_values(self, values: Array) -> Weights:
        return Weights(np.ascontiguousarray(values), self.scale, self.zero_point)

    @property
    def parts(self) -> list[Array]:
        """Weights of int8 whose sum these are: a product by them is the sum of products by each.

        Two where they are from -256 to 254, three for 255, which a weight of uint8 is less a zero point of 0.
        """
        if self.values.dtype != np.int16:
            return [self.values]
        found: list[Array] = []
        rest = self.values
        while rest.any() or not found:
            found.append(np.clip(rest, -128, 127))
            rest = rest - found[-1]
        return [part.astype(np.int8) for part in found]

    def check_whole(self) -> None:
        """Refused for weights that are not int8 less their zero points."""
        if self.values.dtype == np.int16:
            what = "has weights with a zero point for each channel, less which they are not int8"
            raise Refused(what, "Quantize weights as int8, without zero points, or all by one scale.")

    def centred(self) -> Weights:
        """With a zero point of 0, where the integers are int8 then. Refused where each channel needs it."""
        moved = self.values.astype(np.int32) - self.zero_point if self.scale is not None else self.values
        if not self.zero_point or moved.min() < -128 or moved.max() > 127:
            if self.zero_point and self.scale is not None and len(set(self.scale.tolist())) > 1:
                what = "has weights with a zero point and a scale for each channel"
                raise Refused(what, "Quantize weights as int8, without zero points, or all by one scale.")
            return self
        return Weights(moved.astype(np.int8), self.scale)

    def options(self) -> dict[str, Any]:
        """Arguments of the builder."""
        return {} if self.scale is None else {"weight_scale": self.scale, "weight_zero_point": self.zero_point}


def is_bias(added: Stored, units: int) -> bool:
    """Whether a constant that broadcasts to rows of `units` has one number, or one for each unit: not one for a row."""
    return added.values.size == 1 or added.values.size == added.values.shape[-1] == units


def whole_bias(bias: Stored | None, x: Held, weights: Weights) -> tuple[Array | None, dict[str, bool]]:
    """The bias on the scale of sums, int32: as it is where it has that scale, else rounded, as the rule says then.

    weights: output channels are their first axis. Refused for a bias that is neither one number nor one for each.
    """
    if bias is None:
        return None, {}
    assert weights.scale is not None
    count = weights.values.shape[0]
    if bias.values.size not in (1, count):
        raise Refused(f"has the bias {listed(bias.values.shape)} for {count} outputs")
    scale = np.broadcast_to(np.float32(x.tensor.scale[0]) * weights.scale, count)
    own = None if bias.scale is None else np.broadcast_to(bias.scale.reshape(-1), count)
    if bias.values.dtype == np.int32 and own is not None and np.array_equal(own, scale):
        return np.broadcast_to(bias.values.reshape(-1), count), {}
    sums = np.rint(np.broadcast_to(bias.real.reshape(-1), count).astype(np.float64) / scale.astype(np.float64))
    return np.clip(sums, -(2.0**31), 2.0**31 - 1).astype(np.int32), {"rounded_bias": True}
