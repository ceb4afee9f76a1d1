"""Data movement and concatenation. All arrays in logical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stages.arithmetic.fixed_point import Array

if TYPE_CHECKING:
    from stages.graph import LayerView


def move(view: LayerView, x: Array) -> Array:
    """Every kind of stages.operators.movement.Move."""
    kind, params, shape = view.op.kind, view.op.params, view.outputs[0].shape
    if kind in ("reshape", "squeeze"):
        return x.reshape(shape)
    if kind == "layout":
        return x.copy()  # logical order does not change
    if kind == "pad":
        amounts = list(zip(params["before"], params["after"], strict=True))
        return np.pad(x, amounts, constant_values=params["value"])
    if kind == "transpose":
        return x.transpose(params["permutation"])
    if kind in ("slice", "strided_slice", "split"):
        picks = [
            begin + stride * np.arange(size)
            for begin, stride, size in zip(params["begin"], params["stride"], params["size"], strict=True)
        ]
        return x[np.ix_(*picks)].reshape(shape)
    if kind == "resize_nearest_neighbor":
        return x[:, params["rows"]][:, :, params["columns"]]
    raise ValueError(f"layer {view.layer.name}: no reference for data movement {kind!r}")


def concatenation(view: LayerView, *inputs: Array) -> Array:
    """CONCATENATION of tensors that share the output's quantization."""
    return np.concatenate(inputs, axis=view.op.axis)
