"""Tensors between the layers of one operator; the file does not have them."""

from collections.abc import Sequence

from stages.ir.graph import Layout, Move, Tensor
from stages.quantize.writer import GraphWriter


def intermediate(writer: GraphWriter, source: Tensor, shape: Sequence[int], suffix: str) -> Tensor:
    """A tensor of another shape, with the type and scale of `source`, named after it."""
    fields = {"shape": tuple(shape), "layout": Layout("NHWC" if len(shape) == 4 else "")}
    return writer.intermediate(source.model_copy(update=fields), suffix, source.quant)


def reshaped(writer: GraphWriter, source: Tensor, shape: Sequence[int]) -> Tensor:
    """An alias of `source` in another shape."""
    if tuple(shape) == source.shape:
        return source
    return writer.layer(Move(kind="reshape"), [source], intermediate(writer, source, shape, "reshaped"), alias=True)
