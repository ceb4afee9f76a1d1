"""UNIDIRECTIONAL_SEQUENCE_LSTM in numpy compared with LiteRT, over sequences of inferences."""

from typing import Any

import numpy as np
import pytest

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.lstm import Lstm
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.ir.reference.partitions import reference_of
from tests.support.integer import integer_graph

STEPS = 4


def layer(b: ModelBuilder, rng: np.random.Generator, dtype: str, **fields: Any) -> Tensor:
    """An LSTM of random sizes, scales and zero points behind an input."""
    batch, steps, depth, units = (int(v) for v in (rng.integers(1, 4), rng.integers(1, 7), *rng.integers(1, 16, 2)))
    shape = (steps, batch, depth) if fields.get("time_major") else (batch, steps, depth)
    if dtype == "float32":
        x = b.input("x", shape, dtype)
        sampled = (rng.normal(0, 0.5, (4, units, size)).astype(np.float32) for size in (depth, units))
        return b.lstm(x, *sampled, rng.normal(0, 0.5, (4, units)).astype(np.float32), **fields)
    x = b.input("x", shape, dtype, float(rng.uniform(0.005, 0.1)), int(rng.integers(-128, 128)))
    sampled = (rng.integers(-127, 128, (4, units, size)).astype(np.int8) for size in (depth, units))
    bias = rng.integers(-3000, 3000, (4, units)).astype(np.int32)
    scales = (float(rng.uniform(0.0005, 0.05)), float(rng.uniform(0.0005, 0.05)))
    out = (float(rng.uniform(0.004, 0.01)), int(rng.integers(-128, 128)))
    return b.lstm(x, *sampled, bias, scales=scales, out=out, **fields)


def differing(data: bytes, within: float = 0.0) -> tuple[int, int]:
    """Count differing and all values, of outputs and states, over a sequence, a reset and a sequence."""
    graph, reference = integer_graph(data), Reference(data)
    wrong = total = 0
    for _ in range(2):
        states = None
        reference.reset()
        for step in range(STEPS):
            inputs = random_inputs(reference.info, step)
            reference.run(inputs)
            values = run_graph(graph, inputs, None, states)
            states = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
            for name in (*graph.outputs, *states):
                index = graph.tensors[name].tflite_index
                assert index is not None
                apart = np.abs(values[name].astype(float) - reference.tensor(index).astype(float))
                wrong, total = wrong + int((apart > within).sum()), total + apart.size
    return wrong, total


@pytest.mark.parametrize("seed", range(12))
def test_it_is_litert_s(seed: int) -> None:
    rng, b = np.random.default_rng(seed), ModelBuilder()
    fields = {"time_major": bool(seed % 2), "cell_clip": (0.0, 1.5, 6.0)[seed % 3]}
    b.output(layer(b, rng, "int8", cell_scale=2.0 ** -(9 + seed % 7), **fields))
    wrong, total = differing(b.build())
    assert wrong == 0 and total > 8


@pytest.mark.parametrize("fields", [{}, {"time_major": True}, {"cell_clip": 0.3}], ids=str)
def test_in_float32(fields: dict[str, Any]) -> None:
    b = ModelBuilder()
    b.output(layer(b, np.random.default_rng(1), "float32", **fields))
    assert differing(b.build(), 1e-5)[0] == 0


def test_the_state_and_the_results_may_have_scales_of_their_own() -> None:
    """LiteRT uses the scale of the fifth intermediate tensor for results, not that of the output."""
    b, rng = ModelBuilder(), np.random.default_rng(0)
    y = layer(b, rng, "int8")
    b.output(y)
    data = bytearray(b.build())
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    tensors, operator = model.subgraphs[0].tensors, model.subgraphs[0].operators[0]
    between = tensors[operator.intermediates[4]].quantization
    between.scale, between.zeroPoint = np.array([0.0061], np.float32), np.array([17])
    import flatbuffers

    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    changed = bytes(builder.Output())
    (one,) = integer_graph(changed).layers
    assert isinstance(one.op, Lstm) and one.op.output_zero_point == 17 != y.zero_point[0]
    assert differing(changed)[0] == 0


@pytest.mark.parametrize("how", ["STRIDED_SLICE", "GATHER"])
def test_the_last_step_alone(how: str) -> None:
    """As Keras writes `return_sequences=False`."""
    b, rng = ModelBuilder(), np.random.default_rng(5)
    y = layer(b, rng, "int8")
    batch, steps, units = y.shape
    if how == "GATHER":
        last = b.constant("last", np.array(steps - 1, np.int32))
        y = b.emit("GATHER", [y, last], (batch, units), None, "last", "GatherOptions", {"axis": 1})
    else:
        ends = ((0, steps - 1, 0), (batch, steps, units), (1, 1, 1))
        bounds = [b.constant(f"at_{n}", np.array(end, np.int32)) for n, end in enumerate(ends)]
        masks = {"shrinkAxisMask": 2}
        y = b.emit("STRIDED_SLICE", [y, *bounds], (batch, units), None, "last", "StridedSliceOptions", masks)
    weights = rng.integers(-127, 128, (4, units)).astype(np.int8)
    b.output(b.fully_connected(y, weights, weight_scale=0.01, out=(0.05, 3)))
    assert differing(b.build())[0] == 0


@pytest.mark.parametrize("seed", range(6))
def test_sixteen_bits_are_near_real_numbers(seed: int) -> None:
    """LiteRT lacks TFLM's int16 arithmetic, so compare two inferences with an LSTM of real numbers."""
    rng, b = np.random.default_rng(seed), ModelBuilder()
    batch, steps, depth, units, bits = 2, 3, 5, 4, seed
    x = b.input("x", (steps, batch, depth) if seed % 2 else (batch, steps, depth), "int16", 3e-5, 0)
    weights = [rng.normal(0, 1, (4, units, size)) for size in (depth, units)]
    scales = [float(np.float32(np.abs(part).max() / 127)) for part in weights]
    codes = [np.round(part / scale).astype(np.int8) for part, scale in zip(weights, scales, strict=True)]
    bias = np.round(rng.normal(0, 0.5, (4, units)) / (3e-5 * scales[0])).astype(np.int64)
    fields: dict[str, Any] = {"cell_scale": 2.0 ** (bits - 15), "time_major": bool(seed % 2)}
    b.output(b.lstm(x, *codes, bias, scales=(scales[0], scales[1]), out=(1 / 32768, 0), **fields))
    data = b.build()
    graph, reference, states = integer_graph(data), reference_of(data), None
    real = [code * scale for code, scale in zip(codes, scales, strict=True)]
    hidden = cell = np.zeros((batch, units))
    for step in range(2):
        inputs = random_inputs(reference.info, step)
        values = run_graph(graph, inputs, None, states)
        states = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
        assert np.array_equal(values[graph.outputs[0]], reference.run(inputs)[0])
        expected = []
        for row in inputs[0] if seed % 2 else inputs[0].swapaxes(0, 1):
            gates = [row * 3e-5 @ real[0][k].T + hidden @ real[1][k].T + bias[k] * 3e-5 * scales[0] for k in range(4)]
            i, f, o = (1 / (1 + np.exp(-gates[k])) for k in (0, 1, 3))
            cell = np.clip(f * cell + i * np.tanh(gates[2]), -(2.0**bits), 2.0**bits)
            hidden = o * np.tanh(cell)
            expected.append(hidden)
        results = values[graph.outputs[0]] / 32768
        assert np.abs((results if seed % 2 else results.swapaxes(0, 1)) - np.stack(expected)).max() < 2e-3
