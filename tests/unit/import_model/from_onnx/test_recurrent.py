"""LSTM, GRU and RNN of ONNX files over sequences of runs: the integer graph computes what ONNX Runtime does."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime

from stages.base import StageError
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.import_model.onnx import convert
from stages.ir.graph import Graph
from stages.ir.models.tflite_reader import read
from stages.ir.reference.integer import run_graph
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.layout.apply import lay_out
from stages.lower.arena.liveness import liveness
from stages.lower.simplify.edits import without_unread
from stages.quantize.lower import lower_module
from tests.support.integer import LAYOUTS
from tests.support.onnx_graphs import drawn, model, node

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RUNS = 4


class Drawn:
    """A recurrent operator with random sizes, inputs and attributes; `states` are joined."""

    def __init__(self, op: str, seed: int, **attributes: Any) -> None:
        rng = np.random.default_rng(seed)
        self.op, directions = op, ["forward", "reverse", "bidirectional"][seed % 3]
        count = 2 if directions == "bidirectional" else 1
        steps, batch, depth, units = (int(rng.integers(1, most)) for most in (5, 4, 7, 6))
        gates, names = GATES[op], ["h", "c"][: 2 if op == "LSTM" else 1]
        self.state = (count, batch, units)
        weights = {"w": (count, gates * units, depth), "r": (count, gates * units, units)}
        constants = {name: 2 * drawn(seed + at, *shape) for at, (name, shape) in enumerate(weights.items())}
        inputs, shapes = ["x", "w", "r", "", ""], {"x": (steps, batch, depth)}
        if seed % 4:
            inputs[3], constants["b"] = "b", drawn(seed + 5, count, 2 * gates * units)
        if seed % 5 == 0:
            inputs[4], constants["lengths"] = "lengths", np.full(batch, steps, np.int32)
        kind = ("none", "constant", "input", "state", "state")[seed % 5]
        if kind != "none":
            inputs += names
        if kind == "constant":
            constants |= {name: drawn(seed + 7, *self.state) for name in names}
        elif kind != "none":
            shapes |= dict.fromkeys(names, self.state)
        ends = [f"{name}n" for name in names]
        self.states = dict(zip(ends, names, strict=True)) if kind == "state" else {}
        outputs = ["y", *ends] if seed % 7 else ["", *ends]
        outputs = ["y"] if kind == "constant" and outputs[0] else outputs
        results = [name for name in outputs if name]
        chosen = attributes | ({"linear_before_reset": seed % 2} if op == "GRU" else {})
        if op == "RNN" and seed % 2:
            chosen["activations"] = ["Relu"] * count
        call = node(op, inputs, outputs, hidden_size=units, direction=directions, **chosen)
        self.model = model([call, node("Relu", [results[-1]], ["z"])], shapes, [*results, "z"], constants, opset=14)


def graph_of(network: Any, **options: Any) -> tuple[Graph, OnnxReference]:
    converted = convert(network.SerializeToString(), "net.onnx", {}, "nchw", **options)
    info = read(converted.data, "net.onnx")
    description = describe(info, operator_options(converted.data), converted.rules)
    module, _ = lay_out(build_module(converted.data, info), LAYOUTS["NHWC"])
    return lower_module(module, description).graph, OnnxReference(converted.data, converted.original, converted.names)


def relu(view: Any, inputs: Any) -> Any:
    return np.maximum(inputs[0], np.float32(0))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("op", GATES)
def test_a_sequence_is_onnx_runtime_s(op: str, seed: int) -> None:
    """Of runs in which joined states begin with zeros, twice."""
    network = Drawn(op, seed)
    graph, reference = graph_of(network.model, states=network.states)
    graph = without_unread(graph)
    assert sum(tensor.state for tensor in graph.tensors.values()) == len(network.states)
    lives = liveness(graph)
    spans = {buffer.name: range(buffer.first, buffer.last + 1) for buffer in lives.buffers}
    uses = [(layer.index, lives.home[name]) for layer in graph.layers for name in layer.state if name in lives.home]
    assert len(uses) >= 2 and all(index in spans[home] for index, home in uses), "a variable's memory is reused"
    session = onnxruntime.InferenceSession(network.model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    rng = np.random.default_rng(seed)
    for _ in range(2):
        reference.reset()
        kept, states = {name: np.zeros(network.state, np.float32) for name in network.states.values()}, None
        for _ in range(RUNS):
            given = {
                port.name: rng.uniform(-2, 2, port.shape).astype(np.float32) for port in session.get_inputs()
            } | kept
            expected = dict(zip(names, session.run(None, given), strict=True))
            kept = {state: expected[output] for output, state in network.states.items()}
            inputs = [given[tensor.name] for tensor in reference.inputs]
            values = run_graph(graph, inputs, relu, states)
            states = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
            outputs = [name for name in names if name not in network.states]
            for ours, theirs, name in zip(graph.outputs, reference.run(inputs), outputs, strict=True):
                assert np.allclose(values[ours], expected[name], rtol=1e-5, atol=1e-6), name
                assert np.array_equal(theirs, expected[name]), name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": {"hm": "h"}}, "net.onnx has no output 'hm'; its outputs are 'y', 'hn', 'z'"),
        ({"states": {"hn": "hh"}}, "net.onnx has no input 'hh'; its inputs are 'x', 'h'"),
        ({"states": {"hn": "h", "y": "h"}}, "the outputs 'hn' and 'y' of net.onnx both write the state 'h'"),
        ({"states": {"y": "h"}}, "output 'y' is [2, 1, 3, 4], input 'h' is [1, 3, 4]"),
        ({"states": {"i": "h"}}, "output 'i' is int64, input 'h' is float"),
        ({"states": {"hn": "h"}, "constants": {"x": 0}}, "net.onnx has no input besides its states"),
        ({"constants": {"sr": 1}}, "net.onnx has no input 'sr'"),
        ({"constants": {"h": [1.0, 2.0]}}, "input 'h' of net.onnx has the shape [1, 3, 4], but 2 values"),
        ({"constants": {"n": 1.5}}, "input 'n' of net.onnx is int64; 1.5 is not a valid value"),
    ],
)
def test_a_wrong_state_or_constant_is_an_error_with_its_place(options: dict[str, Any], message: str) -> None:
    constants = {"w": drawn(1, 1, 12, 5), "r": drawn(2, 1, 12, 4)}
    nodes = ['y, hn = GRU <hidden_size=4> (x, w, r, "", "", h)  z = Relu (hn)']
    shapes, outputs, types = {"x": (2, 3, 5), "h": (1, 3, 4)}, ["y", "hn", "z"], {}
    if "int64" in message:
        nodes.append("i = Shape (y)")
        outputs, types = [*outputs, "i"], {"i": 7, "n": 7}
        shapes["n"] = (1,)
    network = model(nodes, shapes, outputs, constants, types=types)
    with pytest.raises(StageError) as error:
        convert(network.SerializeToString(), "net.onnx", {}, "nchw", **options)
    assert message in str(error.value)
    assert error.value.at is not None and error.value.at[:1] == ("model",)


@pytest.mark.parametrize(
    ("op", "attributes", "more", "message"),
    [
        ("LSTM", {"clip": 3.0}, [], "has clip 3"),
        ("LSTM", {}, ["", "", "", "p"], "has peepholes"),
        ("GRU", {"activations": ["Sigmoid", "Relu"]}, [], "has the activations Sigmoid, Relu; sigmoid, tanh"),
        ("GRU", {}, ["lengths"], "has sequences of [2, 1, 2] steps"),
        ("RNN", {"layout": 1}, [], "has layout 1"),
    ],
)
def test_unsupported_options_are_refused(op: str, attributes: dict[str, Any], more: list[str], message: str) -> None:
    gates = GATES[op]
    constants = {"w": drawn(1, 1, 4 * gates, 5), "r": drawn(2, 1, 4 * gates, 4), "p": drawn(3, 1, 12)}
    constants["lengths"] = np.array([2, 1, 2], np.int32)
    inputs = ["x", "w", "r", "", *more]
    network = model(
        [node(op, inputs, ["y"], hidden_size=4, **attributes)], {"x": (2, 3, 5)}, ["y"], constants, opset=14
    )
    with pytest.raises(StageError, match=r"operator 0") as error:
        convert(network.SerializeToString(), "net.onnx", {}, "nchw")
    assert message in str(error.value)


@pytest.mark.parametrize(("states", "notes"), [({}, 1), ({"hn": "h"}, 0)])
def test_a_state_that_the_caller_carries_is_named(states: dict[str, str], notes: int) -> None:
    constants = {"w": drawn(1, 1, 12, 5), "r": drawn(2, 1, 12, 4), "half": np.float32(0.5)}
    nodes = 'g = Mul (h, half)  y, hn = GRU <hidden_size=4> (x, w, r, "", "", g)'
    network = model(nodes, {"x": (2, 3, 5), "h": (1, 3, 4)}, ["y", "hn"], constants, opset=14)
    found = convert(network.SerializeToString(), "net.onnx", {}, "nchw", states=states).notes
    assert len(found) == notes
    assert all("input 'h' is the initial state of operator 1 (GRU)" in note and "output 'hn'" in note for note in found)


def test_calibration_refuses_a_network_with_variables() -> None:
    from stages.ir.models.spec import FileModel
    from stages.ptq.float_model import float_model

    data = Drawn("GRU", 1).model.SerializeToString()
    with pytest.raises(StageError, match=r"`mode: calibrate` does not quantize net\.onnx: it has an LSTM, GRU or RNN"):
        float_model(FileModel(file="net.onnx"), data, "net.onnx")


def test_an_if_on_a_constant_input_becomes_its_branch() -> None:
    """An input that chooses between branches, as a sample rate does, is fixed by the recipe."""
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info("b", TensorProto.FLOAT, (2,))]
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(op, ["x"], ["b"])], name, [], ends)
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = ["is = Equal (rate, wanted)", node("If", ["is"], ["y"], **branches)]
    constants = {"wanted": np.array(16000, np.int64)}
    network = model(nodes, {"x": (2,), "rate": ()}, ["y"], constants, types={"rate": 7}).SerializeToString()
    for rate, op in ((16000, "RELU"), (8000, "NEG")):
        converted = convert(network, "net.onnx", {}, "nchw", {"rate": rate})
        assert [operator.op for operator in read(converted.data, "net.onnx").operators] == [op]
    with pytest.raises(StageError, match=r"operator 1 \(If\)") as error:
        convert(network, "net.onnx", {}, "nchw")
    assert "Or fix 'rate' with `constants`" in (error.value.hint or "")
