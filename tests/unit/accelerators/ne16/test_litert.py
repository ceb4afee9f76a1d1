"""The extended engine computes what LiteRT's reference kernels do: convolutions, and the ADD behind one."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from stages.accelerators.ne16.extension import Parameters, Residual
from stages.accelerators.ne16.job import Extension, Job, Mode, Padding, split
from stages.accelerators.ne16.packing import pack
from stages.accelerators.ne16.words import words
from stages.graph import Graph
from stages.models.builder import ModelBuilder, Tensor
from stages.reference.interpreter import Reference
from tests.support.integer import integer_graph
from tests.support.ne16_target import L1, ne16_target, run_batch

pytestmark = pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="no RISC-V compiler")
CHANNELS, SIZE = 20, 7


def network(seed: int, op: str, stride: int, add: bool) -> bytes:
    """A weighted operator over 7x7 (fully connected: one) pixels, and the ADD of a second input."""
    rng = np.random.default_rng(seed)
    scales = {name: float(np.float32(rng.uniform(0.01, 0.1))) for name in ("x", "y", "r", "z")}
    scales["y"], scales["z"] = 3 * scales["y"], 6 * scales["z"]
    zeros = {name: int(rng.integers(-100, 100)) for name in scales}
    weight_scale = [float(np.float32(rng.uniform(0.001, 0.004))) for _ in range(CHANNELS)]
    bias = rng.integers(-2000, 2000, CHANNELS).astype(np.int32)
    builder = ModelBuilder()
    pixels = 1 if op == "fully_connected" else SIZE
    shape = (1, CHANNELS) if pixels == 1 else (1, pixels, pixels, CHANNELS)
    x = builder.input("x", shape, "int8", scales["x"], zeros["x"])
    options: dict[str, Any] = {"weight_scale": weight_scale, "out": (scales["y"], zeros["y"]), "activation": "relu"}
    if add:
        options["activation"] = "none"
    pair = {"stride": (stride, stride)}
    made: Tensor
    if op == "conv2d":
        weights = rng.integers(-127, 128, (CHANNELS, 3, 3, CHANNELS)).astype(np.int8)
        made = builder.conv2d(x, weights, bias, **options, **pair)
    elif op == "depthwise_conv2d":
        weights = rng.integers(-127, 128, (1, 3, 3, CHANNELS)).astype(np.int8)
        made = builder.depthwise_conv2d(x, weights, bias, **options, **pair)
    else:
        weights = rng.integers(-127, 128, (CHANNELS, CHANNELS)).astype(np.int8)
        made = builder.fully_connected(x, weights, bias, **options | {"weight_scale": weight_scale[0]})
    if add:
        other = builder.input("r", made.shape, "int8", scales["r"], zeros["r"])
        made = builder.add(made, other, out=(scales["z"], zeros["z"]), activation="relu")
    builder.output(made)
    return builder.build()


def as_job(graph: Graph, x: np.ndarray, other: np.ndarray | None) -> tuple[Job, bytes]:
    """The network as one job of the extended engine, and L1 with all it needs."""
    view = graph.view(graph.layers[0])
    op = view.op
    weights = view.constant("weights").astype(np.int64)
    mode: Mode = "conv1x1"
    if view.layer.op.op == "fully_connected":
        weights = weights.reshape(CHANNELS, 1, 1, CHANNELS)
    else:
        mode = "conv3x3" if op.op == "conv2d" else "depthwise3x3"
    if mode == "depthwise3x3":
        weights = weights.reshape(3, 3, CHANNELS)
    sums = weights.reshape(9, CHANNELS).sum(0) if mode == "depthwise3x3" else weights.reshape(CHANNELS, -1).sum(1)
    biases = view.constant("bias").reshape(-1).astype(np.int64) - op.input_zero_point * sums
    pixels = x.shape[1] if mode != "conv1x1" else 1
    top, left, bottom, right = getattr(op, "padding", (0, 0, 0, 0))
    stride = getattr(op, "stride", (1, 1))[0]
    out = (pixels + top + bottom - weights.shape[0 if mode == "depthwise3x3" else 1]) // stride + 1
    parameters = Parameters(op.output_zero_point, op.act_min, op.act_max, None if other is None else residual(graph))
    broadcast = [np.broadcast_to(view.constant(role).reshape(-1), (CHANNELS,)) for role in ("multiplier", "shift")]
    parts = {
        "weights": pack(weights, mode, 8, -128),
        "scale": broadcast[0].astype("<i4").tobytes(),
        "shifts": broadcast[1].astype(np.int8).tobytes(),
        "bias": biases.astype("<i4").tobytes(),
        "parameters": parameters.block(),
        "residual": b"" if other is None else other.tobytes(),
        "input": x.tobytes(),
        "output": bytes(out * out * CHANNELS),
    }
    places, l1 = {}, b""
    for name, data in parts.items():
        places[name] = L1 + len(l1)
        l1 += data + bytes(-len(data) % 16)
    job = Job(
        mode=mode, h_out=out, w_out=out, ki=CHANNELS, ko=CHANNELS, input=places["input"], input_pixel=CHANNELS,
        input_row=pixels * CHANNELS, output=places["output"], output_pixel=CHANNELS, output_row=out * CHANNELS,
        weights=places["weights"], stride=stride, padding=Padding(top, right, bottom, left),
        pad_value=op.input_zero_point, signed=True, scale=places["scale"], scale_bits=32, shifts=places["shifts"],
        bias=places["bias"],
        extension=Extension(
            parameters=places["parameters"],
            rounds_once=op.rounding == "single",
            residual=None if other is None else places["residual"],
            signed_input=True,
        ),
    )  # fmt: skip
    return job, l1.ljust(64 << 10, b"\0")


def residual(graph: Graph) -> Residual:
    """The ADD's constants; the layer's output is one of its two inputs."""
    add = graph.layers[1]
    op = graph.view(add).op
    own = add.inputs.index(graph.layers[0].outputs[0])
    other = 1 - own
    assert (op.left_shift, op.rounding, op.zero_points[own]) == (
        20,
        "double",
        graph.view(graph.layers[0]).op.output_zero_point,
    )
    return Residual(
        op.zero_points[other], op.multipliers[own], op.shifts[own], op.multipliers[other], op.shifts[other],
        op.output_multiplier, op.output_shift, op.output_zero_point, op.act_min, op.act_max,
    )  # fmt: skip


CASES = [("conv2d", 1), ("conv2d", 2), ("depthwise_conv2d", 1), ("depthwise_conv2d", 2), ("fully_connected", 1)]


def test_outputs_are_those_of_litert() -> None:
    rng = np.random.default_rng(0)
    batch, expected, places = [], [], []
    for seed, (op, stride) in enumerate(CASES):
        for add in (False, True):
            data = network(seed, op, stride, add)
            graph, reference = integer_graph(data), Reference(data)
            inputs = [rng.integers(-128, 128, tensor.shape).astype(np.int8) for tensor in reference.inputs]
            (wanted,) = reference.run(inputs)
            job, l1 = as_job(graph, inputs[0], inputs[1] if add else None)
            assert len(np.unique(wanted)) > 8, "the network saturates"
            batch.append((l1, [words(part) for part in split(job)]))
            expected.append(wanted)
            places.append(job.output - L1)
    left, _ = run_batch(ne16_target("tflite"), batch)
    for number, (after, wanted, place) in enumerate(zip(left, expected, places, strict=True)):
        found = np.frombuffer(after[place : place + wanted.size], np.int8).reshape(wanted.shape)
        assert np.array_equal(found, wanted), (CASES[number // 2], number % 2)
