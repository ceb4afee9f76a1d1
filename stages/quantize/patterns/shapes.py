"""Tensors between the layers of one operator, which the file does not have."""

from __future__ import annotations

from collections.abc import Sequence

from stages.ir.graph import Layout, Move, Tensor
from stages.quantize.writer import GraphWriter


def unnamed(writer: GraphWriter, source: Tensor, shape: Sequence[int], suffix: str) -> Tensor:
    """A tensor with the type and the scale of `source`, called after it."""
    fields = {"shape": tuple(shape), "layout": Layout("NHWC" if len(shape) == 4 else "")}
    return writer.intermediate(source.model_copy(update=fields), suffix, source.quant)


def reshaped(writer: GraphWriter, source: Tensor, shape: Sequence[int]) -> Tensor:
    """The same memory in another shape."""
    if tuple(shape) == source.shape:
        return source
    return writer.layer(Move(kind="reshape"), [source], unnamed(writer, source, shape, "reshaped"), alias=True)
