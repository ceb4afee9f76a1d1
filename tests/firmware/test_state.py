"""Networks that keep state from one inference to the next, through all stages and over sequences of inferences."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.operators import build
from stages.ir.models.spec import FileModel, OpModel
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import Reference, random_inputs
from tests.support.emitted import Inference, run_emitted, target_named
from tests.support.stages_run import run_stages, verified
from tests.support.variables import Windows, frames, litert_outputs

STEPS = 7


def network(dtype: str = "int8") -> bytes:
    """Two SVDF of ranks 1 and 2, a fully connected layer between them."""
    rng, b, integers = np.random.default_rng(3), ModelBuilder(), dtype == "int8"

    def weights(*shape: int, bits: int = 8) -> np.ndarray:
        most = (1 << bits - 1) - 1
        return (
            rng.integers(-most, most + 1, shape).astype(f"int{bits}")
            if integers
            else rng.normal(0, 1, shape).astype("f")
        )

    def quant(scale: float, zero_point: int) -> tuple[float, int] | None:
        return (scale, zero_point) if integers else None

    scales = (0.005, 4e-5, 8e-4) if integers else None
    x = b.input("x", (1, 9), dtype, *(quant(0.05, -3) or (None,)))
    y = b.svdf(x, weights(6, 9), weights(6, 4, bits=16), rank=1, scales=scales, out=quant(0.06, 5), name="first")
    y = b.fully_connected(y, weights(8, 6), weight_scale=0.004 if integers else None, out=quant(0.05, -8))
    bias = rng.integers(-90000, 90000, 5).astype(np.int32) if integers else rng.normal(0, 1, 5).astype("f")
    out = quant(0.07, 1)
    b.output(b.svdf(y, weights(10, 8), weights(10, 3, bits=16), bias, rank=2, scales=scales, out=out, name="second"))
    return b.build()


def lstm_network(dtype: str = "int8") -> bytes:
    """As Keras has it converted: two LSTM, of which the second gives its last step, and a fully connected layer."""
    rng, b, integers = np.random.default_rng(4), ModelBuilder(), dtype == "int8"

    def weights(*shape: int) -> np.ndarray:
        drawn = rng.integers(-127, 128, shape)
        return drawn.astype(np.int8) if integers else (drawn / 200).astype(np.float32)

    def quant(scale: float, zero_point: int) -> tuple[float, int] | None:
        return (scale, zero_point) if integers else None

    y = b.input("x", (1, 2, 5), dtype, *(quant(0.03, -3) or (None,)))
    for name, depth, units in (("first", 5, 7), ("second", 7, 4)):
        bias = rng.integers(-900, 900, (4, units)).astype(np.int32) if integers else weights(4, units)
        scales = (0.008, 0.009) if integers else None
        out = quant(0.0078, 5)
        y = b.lstm(y, weights(4, units, depth), weights(4, units, units), bias, scales=scales, out=out, name=name)
    ends = ((0, -1, 0), (0, 0, 0), (1, 1, 1))
    given = [b.constant(f"at_{n}", np.array(end, np.int32)) for n, end in enumerate(ends)]
    masks = {"beginMask": 5, "endMask": 7, "shrinkAxisMask": 2}
    y = b.emit("STRIDED_SLICE", [y, *given], (1, 4), None, "last", "StridedSliceOptions", masks)
    b.output(b.fully_connected(y, weights(3, 4), weight_scale=0.01 if integers else None, out=quant(0.03, 1)))
    return b.build()


def rnn_network(dtype: str = "float32") -> bytes:
    """Two simple RNN, of which the second is time-major."""
    rng, b = np.random.default_rng(6), ModelBuilder()

    def weights(*shape: int) -> np.ndarray:
        return rng.uniform(-0.7, 0.7, shape).astype(np.float32)

    y = b.input("x", (2, 3, 5), dtype)
    y = b.rnn(y, weights(6, 5), weights(6, 6), weights(6), name="first")
    b.output(b.rnn(y, weights(4, 6), weights(4, 4), weights(4), activation="relu", time_major=True, name="second"))
    return b.build()


def emitted(folder: Path, tflite: bytes, **options: str) -> Path:
    (folder / "model.tflite").write_bytes(tflite)
    model = FileModel(file=str(folder / "model.tflite"))
    return run_stages(model, target_named("host"), folder / "made", configs={"emit": options})["emit"]


def sequence(reference: Reference, count: int) -> list[list[np.ndarray]]:
    return [random_inputs(reference.info, seed) for seed in range(count)]


def differing(
    reference: Reference, given: Sequence[Sequence[np.ndarray]], found: Sequence[Inference], resets: Sequence[int]
) -> list[int]:
    """Numbers of inferences whose outputs are not LiteRT's over the same sequence."""
    wrong = []
    for number, (inputs, inference) in enumerate(zip(given, found, strict=True)):
        if number in resets:
            reference.reset()
        expected = reference.run(inputs)[0]
        if not np.allclose(inference.outputs[0], expected, rtol=1e-4, atol=1e-4 if expected.dtype == np.float32 else 0):
            wrong.append(number)
    return wrong


@pytest.mark.parametrize("options", [{}, {"arena": "caller", "prefix": "kws"}], ids=["static", "caller's memory"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("network", [network, lstm_network], ids=["svdf", "lstm"])
def test_a_sequence_is_litert_s(
    tmp_path: Path, network: Callable[[str], bytes], dtype: str, options: dict[str, str]
) -> None:
    """State is kept over steps, begins anew at a reset, and where model_init was called alone."""
    made, reference = emitted(tmp_path, network(dtype), **options), Reference(network(dtype))
    given, resets = sequence(reference, 2 * STEPS), (STEPS,)
    found = run_emitted(made, target_named("host"), given, resets=resets)
    assert differing(reference, given, found, resets) == []
    reference.reset()
    assert STEPS in differing(reference, given, found, ()), "a reset has an effect"


def test_a_sequence_of_rnn_is_litert_s(tmp_path: Path) -> None:
    found = verified(rnn_network(), "host", tmp_path, {"simulate": {"inputs": {"random": 2, "steps": STEPS}}})
    assert (found["inputs"], found["mismatches"], found["layers_checked"]) == (4 * STEPS, 0, 2)


def run_as_litert(folder: Path, data: bytes, **emit: str) -> Graph:
    """Runs two sequences; outputs are LiteRT's on the file itself, from the first run and from a reset on."""
    (folder / "model.tflite").write_bytes(data)
    model, target = FileModel(file=str(folder / "model.tflite")), target_named("host")
    made = run_stages(model, target, folder / "made", configs={"emit": emit})
    info = read((made["import"] / "model.tflite").read_bytes())
    given = [random_inputs(info, seed) for seed in range(2 * STEPS)]
    found = run_emitted(made["emit"], target, given, resets=(STEPS,))
    expected = [outputs for at in (0, STEPS) for outputs in litert_outputs(data, given[at : at + STEPS])]
    for step, (inference, outputs) in enumerate(zip(found, expected, strict=True)):
        for ours, theirs in zip(inference.outputs, outputs, strict=True):
            within = 1e-4 if theirs.dtype == np.float32 else 0
            np.testing.assert_allclose(ours, theirs, rtol=within, atol=within, err_msg=f"step {step}")
    return Graph.load(made["tensorize"], constants=False)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_resource_variables_are_state(tmp_path: Path, dtype: str) -> None:
    """They begin with what CALL_ONCE assigns."""
    run_as_litert(tmp_path, frames(dtype))


@pytest.mark.parametrize("seed", [0, 2, 3, 5, 8, 10, 13])
def test_random_windows_stay_in_the_state(tmp_path: Path, seed: int) -> None:
    windows = Windows.drawn(seed)
    graph = run_as_litert(tmp_path, windows.build(), **({"arena": "caller", "prefix": "net"} if seed % 2 else {}))
    kinds = [layer.kind for layer in graph.layers]
    assert kinds.count("slide") == (2 if windows.stays_in_place else 0), windows


TWO_STREAMS = r"""
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "model_trace.h"

static _Alignas(KWS_ARENA_ALIGNMENT) uint8_t arena[2][KWS_ARENA_BYTES], state[2][KWS_STATE_BYTES];
static unsigned traces, wrong;

/* The trace of the last layer is the output, wherever the memory is. */
void kws_layer_done(unsigned layer)
{
    for (unsigned i = 0; i < model_trace_count; i++)
        if (model_traces[i].layer == layer && layer == KWS_LAYER_COUNT - 1)
            traces += model_trace_data(&model_traces[i]) == kws_output(0);
}

static void step(int8_t stream, int8_t number, int8_t *out)
{
    VALUE x[KWS_INPUT0_BYTES / sizeof(VALUE)];
    for (unsigned i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = (VALUE)((int8_t)((stream ? 31 : 71) * number + 29 * (int)i + 5)) / SCALE;
    kws_run((const void *[]){x}, (void *[]){out});
}

int main(void)
{
    int8_t expected[2][6][KWS_OUTPUT0_BYTES], out[KWS_OUTPUT0_BYTES];
    for (int8_t s = 0; s < 2; s++) {
        kws_init(arena[s], sizeof arena[s], state[s], sizeof state[s]);
        for (int8_t k = 0; k < 6; k++)
            step(s, k, expected[s][k]);
        kws_reset();
    }
    wrong += kws_attach(arena[0] + 1, sizeof arena[0], state[0], sizeof state[0]) != -1;
    wrong += kws_init(NULL, sizeof arena[0], state[0], sizeof state[0]) != -1;
    wrong += kws_init(arena[0], sizeof arena[0] - 1, state[0], sizeof state[0]) != -1;
    for (int8_t k = 0; k < 6; k++)
        for (int8_t s = 0; s < 2; s++) {
            wrong += kws_attach(arena[k % 2], sizeof arena[s], state[s], sizeof state[s]) != 0;
            step(s, k, out);
            wrong += memcmp(out, expected[s][k], sizeof out) != 0;
        }
    printf("%u wrong, %u traces\n", wrong, traces);
    return 0;
}
"""


def onnx_network(folder: Path) -> FileModel:
    """An LSTM in both directions, whose states are joined, and a GRU that begins anew in each run."""
    pytest.importorskip("onnx")
    from tests.support.onnx_graphs import drawn
    from tests.support.onnx_graphs import model as onnx_model

    nodes = [
        'y, hn, cn = LSTM <hidden_size=4, direction="bidirectional"> (x, w, r, b, "", h, c)',
        "z = Reshape (y, rows)  g = GRU <hidden_size=3, linear_before_reset=1> (z, gw, gr)",
        "l = LSTM <hidden_size=3> (z, lw, lr)  out = Add (g, l)",
    ]
    sizes = {"w": (2, 16, 5), "r": (2, 16, 4), "b": (2, 32), "gw": (1, 9, 8), "gr": (1, 9, 3)}
    sizes |= {"lw": (1, 12, 8), "lr": (1, 12, 3)}
    constants = {name: drawn(at, *shape) for at, (name, shape) in enumerate(sizes.items())}
    shapes = {"x": (3, 1, 5), "h": (2, 1, 4), "c": (2, 1, 4)}
    constants["rows"] = np.array([3, 1, 8], np.int64)
    net = onnx_model(nodes, shapes, ["out", "hn", "cn"], constants, opset=14)
    (folder / "net.onnx").write_bytes(net.SerializeToString())
    return FileModel(file=str(folder / "net.onnx"), states={"hn": "h", "cn": "c"})


def test_states_of_onnx_are_onnx_runtime_s(tmp_path: Path) -> None:
    """Over sequences; the firmware keeps the joined states only."""
    pytest.importorskip("onnxruntime")
    configs = {"simulate": {"inputs": {"random": 2, "steps": STEPS}}}
    found = verified(onnx_network(tmp_path), "host", tmp_path, configs)
    assert (found["inputs"], found["mismatches"]) == (4 * STEPS, 0)
    assert found["float"]["max_relative"] < 1e-5
    state = json.loads((tmp_path / "run/emit/model.json").read_text())["state"]
    assert [tensor["name"] for tensor in state["tensors"]] == ["h/state", "c/state"]


@pytest.mark.parametrize("kind", ["svdf", "lstm", "onnx"])
def test_two_states_alternate_and_traces_follow_the_memory(tmp_path: Path, kind: str) -> None:
    networks = {"svdf": network, "lstm": lstm_network}
    options = {"arena": "caller", "prefix": "kws", "weights": "c"}
    if kind == "onnx":
        model = onnx_network(tmp_path)
        made = run_stages(model, target_named("host"), tmp_path / "made", configs={"emit": options})["emit"]
    else:
        made = emitted(tmp_path, networks[kind](), **options)
    described, src = json.loads((made / "model.json").read_text()), made / "src"
    (tmp_path / "main.c").write_text(TWO_STREAMS)
    files = [
        one if isinstance(one, str) else one["path"] for kind in ("c", "trace") for one in described["sources"][kind]
    ]
    value = ["-DVALUE=float", "-DSCALE=40"] if kind == "onnx" else ["-DVALUE=int8_t", "-DSCALE=1"]
    command = ["gcc", "-std=c11", "-Wall", "-Werror", "-DMODEL_HOOK", *value, f"-I{src}", str(tmp_path / "main.c")]
    subprocess.run([*command, *(str(src / file) for file in files), "-o", str(tmp_path / "a.out"), "-lm"], check=True)
    told = subprocess.run([str(tmp_path / "a.out")], check=True, capture_output=True, text=True).stdout
    assert told == f"0 wrong, {0 if kind == 'onnx' else 24} traces\n"  # ONNX' ends with the state


def test_all_stages_judge_sequences(tmp_path: Path) -> None:
    """Each random input, each extreme and each file is a sequence; a step that is wrong is named."""
    np.save(tmp_path / "frames.npy", np.random.default_rng(1).integers(-128, 128, (5, 9)).astype(np.int8))
    inputs = {"random": 2, "steps": 3, "files": [str(tmp_path / "frames.npy")]}
    found = verified(network(), "host", tmp_path, {"simulate": {"inputs": inputs}})
    assert (found["inputs"], found["mismatches"]) == (2 * 3 + 2 * 3 + 5, 0)
    simulated = tmp_path / "run/simulate"
    names = json.loads((simulated / "inputs.json").read_text())["names"]
    assert names[:4] == [f"random input 0 of seed 1, step {n}" for n in range(3)] + ["random input 1 of seed 1, step 0"]
    fed = (simulated / "inputs.bin").read_bytes()[24:]
    firsts = [int.from_bytes(fed[at : at + 4], "little") for at in range(0, len(fed), 4 + 9)]
    assert firsts == [1, 0, 0] * 4 + [1, 0, 0, 0, 0]


def test_state_is_judged_beside_an_operator_of_another_judge(tmp_path: Path) -> None:
    """ELU is not among LiteRT's reference kernels: the two SVDF are two parts."""
    b, rng = ModelBuilder(), np.random.default_rng(5)
    y = b.input("x", (1, 6), "int8", 0.05, -3)
    for name in ("first", "second"):
        feature = rng.integers(-127, 128, (6, 6)).astype(np.int8)
        time = rng.integers(-9999, 9999, (6, 4)).astype(np.int16)
        y = b.svdf(y, feature, time, scales=(0.005, 4e-5, 8e-4), out=(0.06, 5), name=name)
        if name == "first":
            y = b.emit("ELU", [y], (1, 6), (0.06, 4), "elu")
    b.output(y)
    inputs = {"random": 2, "steps": STEPS, "extremes": False}
    found = verified(b.build(), "host", tmp_path, {"simulate": {"inputs": inputs}})
    assert (found["inputs"], found["mismatches"], found["layers_checked"]) == (2 * STEPS, 0, 3)
    assert "for 1 x ELU" in found["reference"]


def test_sixteen_bits_are_judged_by_the_formula(tmp_path: Path) -> None:
    """LiteRT has no LSTM of int16; what judges in its place keeps its states over a sequence too."""
    model = build(OpModel(op="lstm", shape=(4, 6), out_channels=5, dtype="int16"))
    found = verified(model, "host", tmp_path, {"simulate": {"inputs": {"random": 2, "steps": STEPS}}})
    assert (found["inputs"], found["mismatches"]) == (4 * STEPS, 0)
    assert found["reference"] == "its formula for 1 x UNIDIRECTIONAL_SEQUENCE_LSTM"
