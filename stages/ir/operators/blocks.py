"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: positions in a block as batches."""

from collections.abc import Callable
from math import prod

from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.declaration import MOVED, Legalization, Operator, Quantization, Tensors
from stages.ir.operators.movement import Move
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np


def _space_to_batch(operation: Operation) -> list[Shape]:
    batch, *space, channels = _dimensions(operation)
    block, amounts = _block(operation), _amounts(operation, "the padding")
    sizes = []
    for axis, (size, step, (before, after)) in enumerate(zip(space, block, amounts, strict=True), 1):
        if (before + size + after) % step:
            raise Refused(f"cannot split axis {axis}, {size} padded by {before} and {after}, into blocks of {step}")
        sizes.append((before + size + after) // step)
    return [(batch * prod(block), *sizes, channels)]


def _batch_to_space(operation: Operation) -> list[Shape]:
    batch, *space, channels = _dimensions(operation)
    block, amounts = _block(operation), _amounts(operation, "the crops")
    if batch % prod(block):
        raise Refused(f"cannot make blocks of {'x'.join(map(str, block))} from a batch of {batch}")
    sizes = []
    for axis, (size, step, (before, after)) in enumerate(zip(space, block, amounts, strict=True), 1):
        if before + after >= size * step:
            raise Refused(f"crops axis {axis} of {size * step} by {before} and {after}")
        sizes.append(size * step - before - after)
    return [(batch // prod(block), *sizes, channels)]


def _dimensions(operation: Operation) -> Shape:
    """Input shape: batch, one or two spatial axes, channels."""
    source = operation.input(0)
    if len(source.shape) not in (3, 4):
        raise Refused(f"has the input {named(source)} {listed(source.shape)}; it must have 3 or 4 axes")
    return source.shape


def _block(operation: Operation) -> list[int]:
    block = operation.integers(1, "the block", len(operation.input(0).shape) - 2)
    if min(block) < 1:
        raise Refused(f"has blocks of {listed(block)}; sizes must be at least 1")
    return block


def _amounts(operation: Operation, label: str) -> list[list[int]]:
    amounts = operation.constant(2, label)
    if amounts.shape != (len(operation.input(0).shape) - 2, 2):
        raise Refused(f"has {label} of shape {listed(amounts.shape)}")
    if amounts.min() < 0:
        raise Refused(f"has {label} {amounts.tolist()}; none may be negative")
    values: list[list[int]] = amounts.tolist()
    return values


def _model(name: str) -> SingleOperatorModel:
    """Blocks of 2 along each axis, without padding."""

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        places, b = len(x.shape) - 2, model.builder
        block = b.constant(f"{model.spec.op}/block", np.full(places, 2, np.int32))
        around = b.constant(f"{model.spec.op}/around", np.asarray(model.spec.pads or [(0, 0)] * places, np.int32))
        return b.emit(name, [x, block, around], None, None, model.spec.op)

    return SingleOperatorModel(build, frozenset({"pads"}))


def _blocks(name: str, shapes: Callable[[Operation], list[Shape]], limits: str) -> Operator:
    return Operator(
        name,
        shapes,
        Tensors((3, 3), types=MOVED, indices=(1, 2)),
        quantization=Quantization(scales="optional", alike=True),
        legalization=Legalization((Move,), opaque=True),
        model=_model(name),
        limits=limits,
    )


_LIMITS = "3 or 4 axes; a pair around a convolution becomes a dilated convolution"
OPERATORS = (
    _blocks("BATCH_TO_SPACE_ND", _batch_to_space, _LIMITS),
    _blocks("SPACE_TO_BATCH_ND", _space_to_batch, _LIMITS),
)
