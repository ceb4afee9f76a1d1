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
from stages.tensorize.float_cost import Operations, operations
from stages.tensorize.float_layer import lower_float


def functions(**options: Any) -> list[Any]:
    """The scheduled PrimFuncs of a float operator."""
    data = build(OpModel.model_validate({**options, "dtype": "float32"}))
    info = read(data, "model")
    module, _ = lay_out(build_module(data, info), LayoutConfig())
    op: Any = lower_module(module, describe(info, operator_options(data))).graph.layers[0].op
    return list(lower_float(module[op.function], "layer").functions.values())


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
