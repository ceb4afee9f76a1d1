"""Tensors that an engine reads as unsigned bytes: the same numbers everywhere, and flips only where they must be."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stages.backends.kernels import registry
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import Graph, LayerView
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.resolve import resolve
from stages.ir.models.spec import ZooModel
from stages.ir.packed import as_in_file
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.tensorize import TensorizeConfig
from stages.tensorize.pass_context import PassContext
from stages.tensorize.signedness import with_cheapest_signedness
from tests.support.emitted import target_named
from tests.support.integer import integer_graph
from tests.support.stages_run import run_tflite

ENGINE = ("conv2d", "depthwise_conv2d", "fully_connected")
QUANT = (0.05, 3)


def price(target: Target, engine: tuple[str, ...] = ENGINE) -> Callable[[LayerView], float]:
    """Of a core beside an engine that reads unsigned bytes alone and computes those operators for nothing."""
    setting = PassContext.of(target, TensorizeConfig(), registry.kernels_of(target).values())

    def instructions(view: LayerView) -> float:
        if view.op.op in engine:
            return 0.0 if view.inputs[0].dtype == "uint8" else float("inf")
        try:
            return setting.choose(view, None).cost or 0.0
        except StageError:
            return float("inf")

    return instructions


def flips(before: Graph, after: Graph) -> list[str]:
    """Names of the tensors that are copied to the other type."""
    known = {layer.name for layer in before.layers}
    return [layer.inputs[0] for layer in after.layers if layer.name not in known]


def check_equal(before: Graph, after: Graph, seed: int = 0) -> None:
    """Every tensor of the file is the same, outputs have their types."""
    rng = np.random.default_rng(seed)
    inputs = []
    for name in before.inputs:
        tensor = before.tensors[name]
        limits = np.iinfo(tensor.dtype)
        inputs.append(rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype))
    ours, theirs = run_graph(after, inputs), run_graph(before, inputs)
    for name, expected in theirs.items():
        found = as_in_file(ours[name], after.tensors[name].added)
        np.testing.assert_array_equal(found, expected, name)
        assert found.dtype == expected.dtype, name
    for one, other in zip(before.outputs, after.outputs, strict=True):
        np.testing.assert_array_equal(ours[other], theirs[one])
        assert after.tensors[other].dtype == before.tensors[one].dtype


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("ds_cnn", ["input"]),
        ("resnet_8", ["input", "flatten"]),  # an average over 64 rounds halves away from the integer 0, that of int8
        ("autoencoder", ["input"]),
        ("mobilenet_v1_0.25_96", ["input"]),
        ("mobilenet_v2_0.35_96", ["input"]),
    ],
)
def test_networks_are_flipped_where_they_must_be(network: str, expected: list[str]) -> None:
    graph = integer_graph(resolve(ZooModel(zoo=network)))
    changed = with_cheapest_signedness(graph, price(target_named("rv32-rvp")))
    check_equal(graph, changed)
    assert flips(graph, changed) == expected


def conv(b: ModelBuilder, x: Tensor, channels: int, kernel: int = 1) -> Tensor:
    rng = np.random.default_rng(channels)
    weights = rng.integers(-127, 128, (channels, kernel, kernel, x.shape[3])).astype(np.int8)
    return b.conv2d(x, weights, rng.integers(-900, 900, channels).astype(np.int32), weight_scale=0.01, out=QUANT)


def between(operator: Callable[[ModelBuilder, Tensor], Tensor], size: int = 6) -> bytes:
    """conv2d, the operator, conv2d."""
    b = ModelBuilder()
    b.output(conv(b, operator(b, conv(b, b.input("x", (1, size, size, 8), "int8", *QUANT), 8)), 8))
    return b.build()


def constant(b: ModelBuilder, shape: tuple[int, ...]) -> Tensor:
    return b.constant("k", np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8), 0.04, -7)


def l2_normalization(b: ModelBuilder, x: Tensor) -> Tensor:
    y = b.tensor("l2", x.shape, "int8", 1 / 128, 0)
    b.operator("L2_NORMALIZATION", [x], [y], "L2NormOptions", {"fusedActivationFunction": 0}, version=2)
    return y


# Operators, and the flips in a chain with two convolutions around: that of the model's input, and those of the operator
# where it cannot be computed in uint8 (before it none: the engine writes int8 as well).
OPERATORS: dict[str, tuple[Callable[[ModelBuilder, Tensor], Tensor], int]] = {
    "add": (lambda b, x: b.add(x, x, out=(0.1, -5)), 1),
    "add of a constant": (lambda b, x: b.add(x, constant(b, (1, 1, 1, 8)), out=(0.1, -5)), 1),
    "mul": (lambda b, x: b.mul(x, constant(b, (1, 6, 6, 8)), out=(0.1, -5)), 1),
    "prelu": (lambda b, x: b.emit("PRELU", [x, constant(b, (1, 1, 8))], x.shape, (0.1, -5), "prelu"), 1),
    "relu": (lambda b, x: b.relu(x), 1),
    "logistic": (lambda b, x: b.logistic(x), 1),
    "hard_swish": (lambda b, x: b.hard_swish(x, out=(0.03, -100)), 1),
    "softmax": (lambda b, x: b.softmax(x), 1),
    "l2_normalization": (l2_normalization, 2),
    "quantize": (lambda b, x: b.quantize(x, "int8", (0.07, 11)), 1),
    "max_pool2d": (lambda b, x: b.max_pool2d(x, (2, 2), (2, 2)), 1),
    "avg_pool2d of 9": (lambda b, x: b.avg_pool2d(x, (3, 3), (3, 3), padding="valid"), 1),
    "avg_pool2d of 4": (lambda b, x: b.avg_pool2d(x, (2, 2), (2, 2)), 2),
    "avg_pool2d of 9 and 6": (lambda b, x: b.avg_pool2d(x, (3, 3), (1, 1), padding="same"), 2),
    "mean": (lambda b, x: b.mean(x, (1, 2), keep_dims=True, out=(0.02, 9)), 1),
    "pad": (lambda b, x: b.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0))), 1),
    "concatenation": (lambda b, x: b.concatenation([x, b.relu(x), x, b.max_pool2d(x, (1, 1), (1, 1))], 3), 1),
    "slice": (lambda b, x: b.slice(x, (0, 1, 0, 2), (1, 4, 5, 3)), 1),
    "transpose": (lambda b, x: b.transpose(x, (0, 2, 1, 3)), 1),
    "reshape": (lambda b, x: b.reshape(x, (1, 12, 3, 8)), 1),
    "resize": (lambda b, x: b.resize_nearest_neighbor(x, (9, 4)), 1),
    "split": (lambda b, x: b.concatenation(b.split(x, 2, 3), 1), 1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_between_layers_of_the_engine(name: str) -> None:
    operator, expected = OPERATORS[name]
    graph = integer_graph(between(operator))
    changed = with_cheapest_signedness(graph, price(target_named("host")))
    for seed in range(3):
        check_equal(graph, changed, seed)
    assert len(flips(graph, changed)) == expected


def test_a_tensor_that_is_an_output_too_is_flipped_once() -> None:
    b = ModelBuilder()
    x = conv(b, b.input("x", (1, 6, 6, 8), "int8", *QUANT), 8)
    b.output(x, conv(b, x, 8), conv(b, x, 4))
    graph = integer_graph(b.build())
    changed = with_cheapest_signedness(graph, price(target_named("host")))
    check_equal(graph, changed)
    assert sorted(flips(graph, changed)) == sorted(["x", graph.layers[0].name])


def test_types_are_what_costs_least() -> None:
    """A sum that has a kernel for int8 alone is worth two flips where other kernels take much longer."""
    graph = integer_graph(between(lambda b, x: b.add(x, x, out=(0.1, -5))))
    of_core = price(target_named("host"))
    for dear, expected in ((1e2, 1), (1e9, 2)):
        changed = with_cheapest_signedness(
            graph,
            lambda view, dear=dear: dear if view.op.op == "add" and view.inputs[0].dtype == "uint8" else of_core(view),
        )
        check_equal(graph, changed)
        assert len(flips(graph, changed)) == expected


def several(b: ModelBuilder, x: Tensor) -> Tensor:
    """Operators with convolutions between them."""
    for name in ("add of a constant", "logistic", "avg_pool2d of 9 and 6", "pad", "concatenation", "l2_normalization"):
        x = conv(b, OPERATORS[name][0](b, x), 8)
    return x


@pytest.mark.parametrize("target", ["host", "rv32-rvp"])
def test_firmware_and_its_traces_equal_litert(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core computes the engine's layers here; what is traced in the other type is compared as in the file."""
    chosen = target_named(target)

    of_all = price(chosen)

    def of_core(view: LayerView) -> float:
        mixed = view.op.op in ENGINE and view.outputs[0].dtype == "int8"
        return float("inf") if mixed else of_all(view)

    def passes(graph: Graph, setting: PassContext) -> Graph:
        return with_cheapest_signedness(graph, of_core)

    monkeypatch.setattr("stages.tensorize.build.with_cheapest_layouts", passes)
    data = between(several, size=7)  # bytes that are no whole words
    reference = Reference(data)
    inferences = [random_inputs(reference.info, seed) for seed in (1, 2)]
    found = run_tflite(data, inferences, tmp_path, target=target)
    traces = json.loads((tmp_path / "artifacts" / "emit" / "model.json").read_text())["traces"]
    assert {trace["added"] for trace in traces} == {0, 128}
    for inputs, inference in zip(inferences, found, strict=True):
        for expected, output in zip(reference.run(inputs), inference.outputs, strict=True):
            np.testing.assert_array_equal(output, expected)
        for trace in traces:
            np.testing.assert_array_equal(
                as_in_file(inference.traces[trace["tensor"]], trace["added"]),
                reference.tensor(trace["tflite_index"]),
                str(trace),
            )
