"""Constant weights and biases, in float32 and as integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.onnx.values import Constant, TensorView
from stages.ir.arrays import Array
from stages.ir.models.onnx_names import LOWERED
from stages.ir.operators.operation import Refused, listed


@dataclass(frozen=True)
class Weights:
    """values: float32 or int8. scale: one, or one per output channel. zero_point: of integers.

    values are int16 if zero points per channel move them out of int8 (`parts`).
    """

    values: Array
    scale: Array | None = None
    zero_point: int = 0

    @classmethod
    def of(cls, stored: Constant, axis: int) -> Weights:
        """Return a constant's weights. axis: of the output channels. Raises Refused."""
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
            channel_shape = (1,) * axis + (-1,) + (1,) * (values.ndim - axis - 1)
            centred = values.astype(np.int64) - zero_points.reshape(channel_shape)
            fits_int8 = centred.min() >= -128 and centred.max() <= 127
            values, zero_points = centred.astype(np.int8 if fits_int8 else np.int16), np.zeros(1, np.int64)
        return cls(values, stored.scale.reshape(-1).astype(np.float32), int(zero_points.reshape(-1)[0]))

    def with_values(self, values: Array) -> Weights:
        """Return the same scale and zero point with other values."""
        return Weights(np.ascontiguousarray(values), self.scale, self.zero_point)

    @property
    def parts(self) -> list[Array]:
        """Return int8 weights with this sum, so that the sum of products is the product.

        Two parts for values from -256 to 254, three for 255.
        """
        if self.values.dtype != np.int16:
            return [self.values]
        parts: list[Array] = []
        remainder = self.values
        while remainder.any() or not parts:
            parts.append(np.clip(remainder, -128, 127))
            remainder = remainder - parts[-1]
        return [part.astype(np.int8) for part in parts]

    def check_int8(self) -> None:
        """Raise Refused for weights that are not int8 after subtracting their zero points."""
        if self.values.dtype == np.int16:
            what = "has weights that leave int8 when the zero point of each channel is subtracted"
            raise Refused(what, "Quantize weights as int8 without zero points, or with one scale.")

    def centred(self) -> Weights:
        """Return the weights with a zero point of 0, if the integers stay int8."""
        moved = self.values.astype(np.int32) - self.zero_point if self.scale is not None else self.values
        if not self.zero_point or moved.min() < -128 or moved.max() > 127:
            if self.zero_point and self.scale is not None and len(set(self.scale.tolist())) > 1:
                what = "has weights with a zero point and a scale for each channel"
                raise Refused(what, "Quantize weights as int8 without zero points, or with one scale.")
            return self
        return Weights(moved.astype(np.int8), self.scale)

    def options(self) -> dict[str, Any]:
        """Return the arguments for the model builder."""
        return {} if self.scale is None else {"weight_scale": self.scale, "weight_zero_point": self.zero_point}


def is_bias(added: Constant, units: int) -> bool:
    """Return whether an added constant has one number, or one per unit, for rows of `units`."""
    return added.values.size == 1 or added.values.size == added.values.shape[-1] == units


def integer_bias(bias: Constant | None, x: TensorView, weights: Weights) -> tuple[Array | None, dict[str, bool]]:
    """Return the bias as int32 on the scale of the sums, and its rule.

    The rule is `rounded_bias` if it was rounded. weights: output channels first. Raises Refused for a bias with another
    number of elements.
    """
    if bias is None:
        return None, {}
    assert weights.scale is not None
    count = weights.values.shape[0]
    if bias.values.size not in (1, count):
        raise Refused(f"has the bias {listed(bias.values.shape)}, which does not fit {count} outputs")
    scale = np.broadcast_to(np.float32(x.tensor.scale[0]) * weights.scale, count)
    bias_scale = None if bias.scale is None else np.broadcast_to(bias.scale.reshape(-1), count)
    if bias.values.dtype == np.int32 and bias_scale is not None and np.array_equal(bias_scale, scale):
        return np.broadcast_to(bias.values.reshape(-1), count), {}
    sums = np.rint(np.broadcast_to(bias.real_values.reshape(-1), count).astype(np.float64) / scale.astype(np.float64))
    return np.clip(sums, -(2.0**31), 2.0**31 - 1).astype(np.int32), {"rounded_bias": True}
