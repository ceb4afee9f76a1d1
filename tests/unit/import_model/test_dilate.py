"""SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND become one dilated convolution, with the same results."""

import numpy as np
import pytest

from stages.import_model.normalize import normalized
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.reference import Reference, random_inputs
from tests.support.integer import compare

Pads = list[list[int]]


def blocks(b: ModelBuilder, op: str, x: Tensor, block: list[int], around: Pads) -> Tensor:
    arguments = [b.constant("block", np.array(block, np.int32)), b.constant("around", np.array(around, np.int32))]
    return b.emit(op, [x, *arguments], None, None, op.lower())


def network(
    block: list[int],
    pads: Pads,
    crops: Pads,
    *,
    dtype: str = "int8",
    kernel: tuple[int, int] = (3, 3),
    depthwise: bool = False,
    read_twice: bool = False,
    stride: tuple[int, int] = (1, 1),
    last: list[int] | None = None,
) -> bytes:
    rng, b = np.random.default_rng(5), ModelBuilder()
    quant = {"int8": (0.05, -3), "uint8": (0.05, 120)}.get(dtype, ())
    x = b.input("x", (1, 12, 9, 4), dtype, *quant)
    split = blocks(b, "SPACE_TO_BATCH_ND", x, block, pads)
    shape = (1, *kernel, 4) if depthwise else (6, *kernel, 4)
    if dtype == "float32":
        weights, more = rng.standard_normal(shape).astype(np.float32), {}
    else:
        low, high = (-127, 128) if dtype == "int8" else (0, 256)
        weights = rng.integers(low, high, shape).astype(dtype)
        more = {"weight_scale": 0.01, "weight_zero_point": 0 if dtype == "int8" else 131, "out": (0.07, quant[1] + 8)}
    add = b.depthwise_conv2d if depthwise else b.conv2d
    y = add(split, weights, **more, padding="valid", stride=stride, name="conv")
    b.output(blocks(b, "BATCH_TO_SPACE_ND", y, last or block, crops))
    if read_twice:
        b.output(y)
    return b.build()


# block, padding, crops, what is left
CASES = {
    "same": ([2, 2], [[2, 2], [2, 3]], [[0, 0], [0, 1]], ["CONV_2D"]),
    "valid": ([2, 3], [[0, 0], [0, 0]], [[0, 0], [0, 0]], ["CONV_2D"]),
    "padded": ([3, 1], [[1, 5], [2, 0]], [[1, 0], [0, 0]], ["PAD", "CONV_2D"]),
    "cropped": ([2, 1], [[1, 1], [0, 0]], [[0, 2], [0, 0]], ["SPACE_TO_BATCH_ND", "CONV_2D", "BATCH_TO_SPACE_ND"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("depthwise", [False, True])
def test_three_operators_are_one(case: str, dtype: str, depthwise: bool) -> None:
    block, pads, crops, remaining = CASES[case]
    data = network(block, pads, crops, dtype=dtype, depthwise=depthwise)
    result = normalized(data, "net")
    wanted = ["DEPTHWISE_CONV_2D" if depthwise and op == "CONV_2D" else op for op in remaining]
    assert [operator.op for operator in result.info.operators] == wanted
    assert bool(result.notes) == (case != "cropped")
    inputs = random_inputs(result.info, 3)
    for ours, theirs in zip(Reference(result.data).run(inputs), Reference(data).run(inputs), strict=True):
        if dtype == "float32":
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(ours, theirs)
    if dtype != "float32":
        assert compare(result.data, inputs).wrong == {}
        assert compare(data, inputs).wrong == {}


@pytest.mark.parametrize("change", [{"read_twice": True}, {"stride": (2, 1)}, {"last": [1, 4]}])
def test_others_stay_as_they_are(change: dict[str, object]) -> None:
    data = network([2, 2], [[2, 2], [2, 3]], [[0, 0], [0, 0]], **change)  # type: ignore[arg-type]
    assert normalized(data, "net").data is data
