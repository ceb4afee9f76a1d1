"""PACK, UNPACK, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND as reshapes, transposes and slices."""

from collections.abc import Sequence
from math import prod

from stages.ir.graph import Concatenation, Move, Tensor
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operands
from stages.quantize.patterns.shapes import intermediate, reshaped
from stages.quantize.writer import GraphWriter


def pack(operator: Operator, writer: GraphWriter) -> None:
    """PACK: each input gets an axis of size 1, along which they are concatenated."""
    out = operator.outputs[0]
    axis = int(operator.options["axis"]) % len(out.shape)
    parts = operands(operator, writer)
    shape = (*parts[0].shape[:axis], 1, *parts[0].shape[axis:])
    writer.layer(Concatenation(axis=axis), [reshaped(writer, part, shape) for part in parts], out)


def unpack(operator: Operator, writer: GraphWriter) -> None:
    """UNPACK: for each output a slice of size 1 along the axis, without that axis."""
    (source,) = operands(operator, writer)
    axis = int(operator.options["axis"]) % len(source.shape)
    size = [1 if at == axis else n for at, n in enumerate(source.shape)]
    for number, out in enumerate(operator.outputs):
        begin = [number if at == axis else 0 for at in range(len(size))]
        params = {"begin": begin, "stride": [1] * len(size), "size": size}
        writer.layer(Move(kind="strided_slice", params=params), [source], out)


def space_to_batch(operator: Operator, writer: GraphWriter) -> None:
    """SPACE_TO_BATCH_ND: pad, split into blocks, move positions in a block before the batch."""
    source, out = operands(operator, writer, 1)[0], operator.outputs[0]
    block, amounts = (operator.known(position).tolist() for position in (1, 2))
    batch, *space, channels = source.shape
    if any(map(any, amounts)):
        before, after = ([0, *(pair[side] for pair in amounts), 0] for side in (0, 1))
        space = [size + sum(pair) for size, pair in zip(space, amounts, strict=True)]
        padded = intermediate(writer, source, (batch, *space, channels), "padded")
        value = source.zero_point if source.quant else 0
        params = {"before": before, "after": after, "value": value}
        source = writer.layer(Move(kind="pad", params=params), [source], padded)
    # batch, then (rows of blocks, row in the block) along each axis, then channels
    split = [part for size, step in zip(space, block, strict=True) for part in (size // step, step)]
    inside, blocks = (range(first, first + len(split), 2) for first in (2, 1))
    order = [*inside, 0, *blocks, 1 + len(split)]
    _exchanged(writer, source, (batch, *split, channels), order, out)


def batch_to_space(operator: Operator, writer: GraphWriter) -> None:
    """BATCH_TO_SPACE_ND: the inverse of SPACE_TO_BATCH_ND, then a crop."""
    source, out = operands(operator, writer, 1)[0], operator.outputs[0]
    block, amounts = (operator.known(position).tolist() for position in (1, 2))
    batch, *space, channels = source.shape
    places = len(block)
    shape = (*block, batch // prod(block), *space, channels)
    order = [places, *(part for at in range(places) for part in (places + 1 + at, at)), 2 * places + 1]
    uncropped_shape = (shape[places], *(size * step for size, step in zip(space, block, strict=True)), channels)
    if uncropped_shape == out.shape:
        _exchanged(writer, source, shape, order, out)
        return
    uncropped = intermediate(writer, source, uncropped_shape, "uncropped")
    _exchanged(writer, source, shape, order, uncropped)
    begin = [0, *(pair[0] for pair in amounts), 0]
    params = {"begin": begin, "stride": [1] * len(begin), "size": list(out.shape)}
    writer.layer(Move(kind="slice", params=params), [writer.graph.tensors[uncropped.name]], out)


def _exchanged(writer: GraphWriter, source: Tensor, shape: Sequence[int], order: Sequence[int], out: Tensor) -> None:
    """Write `out`: `source` reshaped to `shape`, with its axes in `order`."""
    split = reshaped(writer, source, shape)
    moved = intermediate(writer, source, tuple(shape[axis] for axis in order), "exchanged")
    writer.layer(Move(kind="transpose", params={"permutation": list(order)}), [split], moved)
    writer.layer(Move(kind="reshape"), [moved], out, alias=True)


PATTERNS = {"BATCH_TO_SPACE_ND": batch_to_space, "PACK": pack, "SPACE_TO_BATCH_ND": space_to_batch, "UNPACK": unpack}
