"""Layers of real numbers: what they compute, what they cost, and how they are reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.models.builder import BuildError, ModelBuilder
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_reader import read
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.quantize.lower import lower_module
from stages.tensorize.float_cost import Operations, operations
from stages.tensorize.float_layer import lower_float
from stages.tensorize.float_schedule import with_vector_extremes
from stages.tensorize.packing import float_warnings
from tests.support.emitted import Inference, run_emitted, target_named
from tests.support.integer import integer_graph
from tests.support.stages_run import check_firmware, run_stages


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


@pytest.mark.parametrize(
    ("extreme", "constant", "function"),
    [
        ("Max", 0.0, "fmaxf"),
        ("Min", 6.0, "fminf"),
        # v > -0.0 ? v : -0.0 is -0 for 0, and v < 0.0 ? v : 0.0 is 0 for -0; the functions are not
        ("Max", -0.0, ""),
        ("Min", 0.0, ""),
        ("Min", float("nan"), ""),
    ],
)
def test_only_exact_extremes_become_functions(extreme: str, constant: float, function: str) -> None:
    from tvm import tirx

    v = tirx.Var("v", "float32")
    body = tirx.Evaluate(getattr(tirx, extreme)(v, tirx.FloatImm("float32", constant)))
    text = str(with_vector_extremes(tirx.PrimFunc([v], body)).body)
    assert function in text if function else "call" not in text


CONVOLUTION = {"op": "conv2d", "out_channels": 20, "stride": (2, 2)}
DEPTHWISE = {"op": "depthwise_conv2d"}


@pytest.mark.parametrize(
    ("name", "options", "most"),
    [
        ("aarch64", CONVOLUTION, 1.3 * 36 * 20 * 72),
        ("cortex-m55", CONVOLUTION, 1.8 * 36 * 20 * 72),
        ("rv64-scalar", CONVOLUTION, 3.0 * 36 * 20 * 72),
        ("rv64-scalar", DEPTHWISE, 4.5 * 144 * 8 * 9),
    ],
)
def test_a_convolution_with_relu6_is_fast_and_exact(
    name: str, options: dict[str, Any], most: float, tmp_path: Path
) -> None:
    """The host computes the same with other blocks and choices. NaN, infinities and zeros are among the inputs."""
    shape = {"shape": (12, 12, 8), "kernel": (3, 3), "activation": "relu6", "dtype": "float32"}
    model = OpModel.model_validate({**shape, **options})
    x = np.random.default_rng(1).uniform(-3, 3, (1, 12, 12, 8)).astype(np.float32)
    x[0, ::5, ::4, 0] = [np.nan, np.inf, -np.inf]
    x[0, 3:5] = -0.0

    def run(name: str) -> Inference:
        target = target_named(name)
        emitted = run_stages(model, target, tmp_path / name)["emit"]
        return run_emitted(emitted, target, [[x]], flags=("-O2",))[0]

    expected, actual = run("host"), run(name)
    assert expected.outputs[0].tobytes() == actual.outputs[0].tobytes()
    assert sum(actual.instructions) < most


CASES = [(op, dtype) for op in ("ADD_N", "FLOOR_DIV", "FLOOR_MOD", "POW") for dtype in ("float32", "int32")]
CASES[CASES.index(("POW", "int32"))] = ("FLOOR_MOD", "int64")


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_pairs(op: str, dtype: str, tmp_path: Path) -> None:
    """Of both signs, with broadcasting where the operator has it; ADD_N of three."""
    rng = np.random.default_rng(len(op))
    shapes = [(2, 3, 4)] * 3 if op == "ADD_N" else [(2, 3, 4), (3, 1)]
    given = [rng.uniform(0.5, 6, shape).astype(dtype) for shape in shapes]
    if op != "POW":
        given = [
            np.where(rng.integers(0, 2, x.shape), np.maximum(x, 1), -np.maximum(x, 1)).astype(dtype) for x in given
        ]
    b = ModelBuilder()
    inputs = [b.input(f"x{number}", shape, dtype) for number, shape in enumerate(shapes)]
    b.output(b.emit(op, inputs, None, None, "y"))
    check_firmware(b.build(), tmp_path, [given], within=1e-6)


def test_add_n_takes_one_shape() -> None:
    b = ModelBuilder()
    inputs = [b.input("a", (2, 3), "float32"), b.input("b", (3,), "float32")]
    with pytest.raises(BuildError, match="all must have one shape"):
        b.emit("ADD_N", inputs, None, None, "y")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "rv64-rvp",
            (
                "rv64-rvp has no floating-point unit: 2 float layers will take some 1,200 instructions per inference: "
                "'last' (exp), 'inside' (exp)"
            ),
        ),
        (
            "host",
            (
                "1 float layer between integers: a core without floating-point unit takes some 230 instructions "
                "for them: 'inside' (exp)"
            ),
        ),
    ],
)
def test_float_layers_are_named(target: str, told: str) -> None:
    """`inside` is between integers, `last` gives the output."""
    b = ModelBuilder()
    x = b.input("x", (1, 8), "int8", 0.1, 0)
    inside = b.emit("EXP", [b.dequantize(x, name="real")], (1, 8), None, "inside", "ExpOptions")
    again = b.dequantize(b.quantize(inside, "int8", (0.1, 0), name="integers"), name="again")
    b.output(b.emit("EXP", [again], (1, 8), None, "last", "ExpOptions"))
    graph = integer_graph(b.build())
    soft = {
        layer.index: {"inside": 234.0, "last": 987.0}[layer.name] for layer in graph.layers if layer.op.op == "float"
    }
    assert float_warnings(graph, soft, target_named(target)) == (told,)
    assert float_warnings(graph, {}, target_named(target)) == ()
