"""Results that follow from constants and fixed shapes are constants of the imported file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.build import build_module
from stages.import_model.normalize import normalized
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.reference import Reference, random_inputs
from tests.support.malformed import altered, tensor
from tests.support.stages_run import run_tflite

Add = Callable[[ModelBuilder, Tensor], Tensor]


def integers(b: ModelBuilder, *values: int) -> Tensor:
    return b.constant("n", np.array(values, np.int32))


def shape_of(b: ModelBuilder, x: Tensor) -> Tensor:
    shape = b.tensor("shape", (len(x.shape),), "int32")
    b.operator("SHAPE", [x], [shape], "ShapeOptions", {"outType": 2})
    return shape


def size_of(b: ModelBuilder, x: Tensor, axis: int) -> Tensor:
    """The size of an axis as Keras takes it: SHAPE, then one element of that."""
    size, bounds = b.tensor("size", (), "int32"), [integers(b, axis), integers(b, axis + 1), integers(b, 1)]
    b.operator("STRIDED_SLICE", [shape_of(b, x), *bounds], [size], "StridedSliceOptions", {"shrinkAxisMask": 1})
    return size


def flatten(b: ModelBuilder, x: Tensor) -> Tensor:
    """As Keras writes it."""
    rest = b.constant("rest", np.array(-1, np.int32))
    wanted = b.tensor("wanted", (2,), "int32")
    fields = {"valuesCount": 2, "axis": 0}
    b.operator("PACK", [size_of(b, x, 0), rest], [wanted], "PackOptions", fields)
    y = b.tensor("flat", (x.shape[0], int(np.prod(x.shape[1:]))), x.dtype, x.scale or None, x.zero_point or 0)
    b.operator("RESHAPE", [x, wanted], [y], "ReshapeOptions")
    return y


def filled(b: ModelBuilder, x: Tensor) -> Tensor:
    """x + FILL(SHAPE(x), 3) in float32."""
    threes = b.tensor("threes", x.shape, "float32")
    b.operator("FILL", [shape_of(b, x), b.constant("v", np.array(3.0, np.float32))], [threes])
    return b.add(x, threes)


def zeros(b: ModelBuilder, x: Tensor) -> Tensor:
    """max(x, ZEROS_LIKE(x)) by SELECT."""
    nothing, above = b.tensor("nothing", x.shape, "float32"), b.tensor("above", x.shape, "bool")
    b.operator("ZEROS_LIKE", [x], [nothing])
    b.operator("GREATER", [x, nothing], [above])
    y = b.tensor("y", x.shape, "float32")
    b.operator("SELECT_V2", [above, x, nothing], [y])
    return y


def transposed_weights(b: ModelBuilder, x: Tensor) -> Tensor:
    """A product with weights that the file has the other way round."""
    turned = b.tensor("turned", (3, x.shape[-1]), "float32")
    weights = b.constant("w", np.arange(3 * x.shape[-1], dtype=np.float32).reshape(-1, 3))
    b.operator("TRANSPOSE", [weights, integers(b, 1, 0)], [turned])
    y = b.tensor("y", (1, 3), "float32")
    b.operator("FULLY_CONNECTED", [x, turned], [y], "FullyConnectedOptions")
    return y


def model(add: Add, shape: tuple[int, ...], dtype: str = "float32") -> bytes:
    b = ModelBuilder()
    b.output(add(b, b.input("x", shape, dtype, *((0.05, -3) if dtype == "int8" else ()))))
    return b.build()


@pytest.mark.parametrize(
    ("add", "shape", "dtype", "remaining", "note"),
    [
        (flatten, (1, 3, 4, 2), "int8", ["RESHAPE"], "1 x PACK, 1 x SHAPE, 1 x STRIDED_SLICE: "),
        (flatten, (2, 5), "float32", ["RESHAPE"], "1 x PACK, 1 x SHAPE, 1 x STRIDED_SLICE: "),
        (filled, (1, 3, 4), "float32", ["ADD"], "1 x FILL, 1 x SHAPE: "),
        (zeros, (2, 7), "float32", ["GREATER", "SELECT_V2"], "1 x ZEROS_LIKE: "),
        (transposed_weights, (1, 4), "float32", ["FULLY_CONNECTED"], "1 x TRANSPOSE: "),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_known_is_a_constant(
    add: Add, shape: tuple[int, ...], dtype: str, remaining: list[str], note: str
) -> None:
    data = model(add, shape, dtype)
    result = normalized(data, "net")
    assert [operator.op for operator in result.info.operators] == remaining
    assert [text.startswith(note) for text in result.notes] == [True]
    inputs = random_inputs(result.info, 3)
    for ours, theirs in zip(Reference(result.data).run(inputs), Reference(data).run(inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    build_module(result.data, result.info)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_an_output_that_is_known_is_copied_in_every_run(dtype: str, tmp_path: Path) -> None:
    """Of any type, with four axes and fewer: of the file itself, or what follows from it."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype, *((0.05, -3) if dtype == "int8" else ()))
    shape, wide, bits = shape_of(b, x), b.tensor("wide", (3, 2), "int64"), b.tensor("b", (2,), "bool")
    b.operator("FILL", [integers(b, 3, 2), b.constant("v", np.array(5_000_000_000, np.int64))], [wide])
    b.operator("GREATER", [integers(b, 3, 2), integers(b, 2, 3)], [bits])
    image = b.constant("image", np.arange(12, dtype=np.int8).reshape(1, 2, 2, 3), 0.5, 3)
    b.output(shape, b.add(x, x), wide, image, bits)
    inputs = random_inputs(Reference(b.build()).info, 1)
    expected = Reference(b.build()).run(inputs)
    (output,) = run_tflite(b.build(), [inputs], tmp_path)
    for ours, theirs in zip(output.outputs, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_a_value_that_is_computed_fills_a_shape_that_is_known(tmp_path: Path) -> None:
    b = ModelBuilder()
    x, value = b.input("x", (1, 3, 4), "float32"), b.input("value", (), "float32")
    filled = b.tensor("made", x.shape, "float32")
    b.operator("FILL", [shape_of(b, x), value], [filled])
    b.output(b.add(x, filled))
    inputs = random_inputs(Reference(b.build()).info, 1)
    (output,) = run_tflite(b.build(), [inputs], tmp_path)
    np.testing.assert_array_equal(output.outputs[0], inputs[0] + inputs[1])


def test_a_shape_that_follows_from_one_that_is_left_out() -> None:
    """The pooled image's shape is LiteRT's to infer; what SHAPE gives of it is known then, and the flatten."""
    data = model(lambda b, x: flatten(b, b.max_pool2d(x, (2, 2), name="pool")), (1, 6, 6, 2), "int8")
    data = altered(data, *(tensor(name, shape=None, hasRank=False) for name in ("pool", "flat")))
    result = normalized(data, "net")
    assert [operator.op for operator in result.info.operators] == ["MAX_POOL_2D", "RESHAPE"]
    assert [result.info.tensors[index].shape for index in result.info.outputs] == [(1, 18)]


def test_the_shape_of_a_dynamic_tensor_says_what_to_do() -> None:
    data = altered(model(flatten, (2, 5)), tensor("x", shape=[0, 5]))
    result = normalized(data, "net")
    with pytest.raises(StageError, match="SHAPE") as caught:
        build_module(result.data, result.info)
    assert "Export the model with fixed shapes" in f"{caught.value}{caught.value.hint}"
