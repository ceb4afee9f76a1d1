"""What float layers are expected to take."""

from typing import Any

import pytest

from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_reader import read
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.quantize.lower import lower_module
from stages.tensorize.float_cost import Operations, float_cost, operations
from stages.tensorize.float_layer import lower_float
from tests.support.emitted import target_named


def functions(**options: Any) -> list[Any]:
    """The scheduled PrimFuncs of a float operator."""
    data = build(OpModel.model_validate({**options, "dtype": "float32"}))
    info = read(data, "model")
    module, _ = lay_out(build_module(data, info), LayoutConfig())
    op: Any = lower_module(module, describe(info, operator_options(data))).graph.layers[0].op
    return list(lower_float(module, op.function, "layer").functions.values())


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        # 10 maxima, 10 differences and additions for the sum, 10 differences and divisions; 20 exponentials
        ({"op": "softmax", "shape": (10,)}, Operations(arithmetic=50, calls=20, stores=32)),
        ({"op": "add", "shape": (100,)}, Operations(arithmetic=100, calls=0, stores=100)),
        ({"op": "logistic", "shape": (7,)}, Operations(arithmetic=0, calls=7, stores=7)),
    ],
    ids=lambda value: value["op"] if isinstance(value, dict) else "",
)
def test_operations_are_counted_in_all_turns_of_the_loops(options: dict[str, Any], counted: Operations) -> None:
    assert sum((operations(function.body) for function in functions(**options)), Operations()) == counted


@pytest.mark.parametrize(
    ("options", "macs"),
    [
        ({"op": "fully_connected", "shape": (256,), "out_channels": 64}, 256 * 64),
        ({"op": "conv2d", "shape": (8, 8, 16), "out_channels": 16, "kernel": (3, 3)}, 64 * 16 * 16 * 9),
        ({"op": "depthwise_conv2d", "shape": (8, 8, 16), "kernel": (5, 5), "padding": "valid"}, 16 * 16 * 25),
    ],
    ids=lambda value: value["op"] if isinstance(value, dict) else "",
)
def test_a_product_takes_some_150_instructions_without_a_floating_point_unit(
    options: dict[str, Any], macs: int
) -> None:
    made = functions(**options)
    assert 150 < float_cost(made, target_named("rv32-scalar")) / macs < 250
    assert 2 < float_cost(made, target_named("rv64-scalar")) / macs < 10


def test_what_a_window_reads_counts_whatever_its_size() -> None:
    """Of pooling no products are known, and elements say little: a window may be as large as the image."""
    costs = [
        float_cost(
            functions(op="max_pool2d", shape=(16, 16, 2), kernel=(k, k), stride=(1, 1)), target_named("cortex-m33")
        )
        for k in (2, 4, 8)
    ]
    assert costs[0] * 3 < costs[1] and costs[1] * 3 < costs[2]
