"""Float networks to integer files: types, determinism, rules, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.base import StageError
from stages.import_model.normalize.graph import one_graph
from stages.ir.model_info import ModelInfo
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ir.operators.table import OPERATORS
from stages.ir.reference import Reference
from stages.ptq import precision
from stages.ptq.compare import MOST_DB
from tests.support.float_networks import images, run_ptq, small_network
from tests.support.optional import needs

pytestmark = needs("ai_edge_quantizer", "ptq")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with calibration data."""
    np.save(tmp_path / "images.npy", images())
    return tmp_path


def quantized(folder: Path, model: bytes | None = None, **config: Any) -> tuple[ModelInfo, dict[str, Any]]:
    out = run_ptq(folder, model or small_network(), {"data": {"files": ["images.npy"]}, **config})
    return read((out / "model.tflite").read_bytes()), json.loads((out / "ptq.json").read_text())


def types(info: ModelInfo) -> list[tuple[str, str, str]]:
    """Of each operator: its name, the type of its weights if it has some, of its output."""
    operator_types = []
    for operator in info.operators:
        constants = [info.tensors[index] for index in operator.inputs[1:2] if info.tensors[index].data is not None]
        weights = constants[0].dtype if constants else ""
        operator_types.append((operator.op, weights, info.tensors[operator.outputs[0]].dtype))
    return operator_types


def test_all_becomes_int8_with_a_scale_for_each_channel(data: Path) -> None:
    info, summary = quantized(data)
    assert types(info) == [
        ("CONV_2D", "int8", "int8"),
        ("DEPTHWISE_CONV_2D", "int8", "int8"),
        ("MAX_POOL_2D", "", "int8"),
        ("FULLY_CONNECTED", "int8", "int8"),
        ("SOFTMAX", "", "int8"),
    ]
    assert [info.tensors[index].dtype for index in (*info.inputs, *info.outputs)] == ["int8", "int8"]
    assert info.tensors[info.operators[0].inputs[1]].scale.size == 8
    assert summary["warnings"] == [] and summary["snr"] > 25
    # Ranges are what the float network has, from 0 where all is above.
    oracle = Reference(small_network())
    highest = 0.0
    for image in images():
        oracle.run([image[None]])
        highest = max(highest, float(oracle.tensor(oracle.info.operators[0].outputs[0]).max()))
    conv = info.tensors[info.operators[0].outputs[0]]
    assert (conv.scale[0], conv.zero_point[0]) == (pytest.approx(highest / 255), -128)


def test_the_same_bytes_in_every_process(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        out = run_ptq(data, small_network(), {"data": {"files": ["images.npy"]}})
        results.append([(out / name).read_bytes() for name in ("model.tflite", "ptq.json")])
    assert results[0] == results[1]


def test_int4_weights_where_the_quantizer_has_them(data: Path) -> None:
    info, _ = quantized(data, weights="int4")
    assert [weights for op, weights, _ in types(info) if weights] == ["int4", "int8", "int4"]
    assert {dtype for _, _, dtype in types(info)} == {"int8"}


def test_int16_activations_where_there_is_such_a_form(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = OPERATORS["MAX_POOL_2D"]
    without_int16 = tuple(candidate for candidate in pool.tensors.types if candidate != "int16")
    narrow = replace(pool, tensors=replace(pool.tensors, types=without_int16))
    monkeypatch.setattr(precision, "OPERATORS", {**dict(OPERATORS), "MAX_POOL_2D": narrow})
    eight, sixteen = (quantized(data, activations=kind)[1] for kind in ("int8", "int16"))
    snr = [{layer["name"]: layer["snr"] for layer in candidate["layers"]}["dense"] for candidate in (eight, sixteen)]
    assert snr[1] > snr[0] + 5
    types = {layer["name"]: layer["dtype"] for layer in sixteen["layers"]}
    assert [types[name] for name in ("conv", "depthwise", "pool", "dense")] == ["int16", "int16", "int8", "int16"]
    assert "1 x MAX_POOL_2D" in sixteen["warnings"][0] and "no int16 form, int8 is used" in sixteen["warnings"][0]


def test_rules_keep_layers_float_or_at_16_bits(data: Path) -> None:
    rules = {"keep_float": [{"op": "depthwise_conv2d"}], "keep_int16": [{"name": "den*"}, {"name": "nothing"}]}
    info, summary = quantized(data, **rules)
    assert types(info) == [
        ("CONV_2D", "int8", "int8"),
        ("DEQUANTIZE", "", "float32"),
        ("DEPTHWISE_CONV_2D", "float32", "float32"),
        ("QUANTIZE", "", "int8"),
        ("MAX_POOL_2D", "", "int8"),
        ("QUANTIZE", "", "int16"),
        ("FULLY_CONNECTED", "int8", "int16"),
        ("QUANTIZE", "", "int8"),
        ("SOFTMAX", "", "int8"),
    ]
    assert summary["warnings"] == ["keep_int16 rule 2 ({name: nothing}) matches no layer"]
    kept = {layer["name"]: (layer["dtype"], layer["scale"] is None) for layer in summary["layers"]}
    assert kept["depthwise"] == ("float32", True) and kept["dense"] == ("int16", False)


def test_what_has_no_integers_stays_float_and_is_named(data: Path) -> None:
    b = ModelBuilder()
    x = b.conv2d(b.input("x", (1, 8, 8, 3), "float32"), np.ones((4, 1, 1, 3), np.float32), name="conv")
    b.output(b.relu(b.emit("COS", [x], x.shape, None, "cos")))
    info, summary = quantized(data, b.build())
    assert ("COS", "", "float32") in types(info)
    assert summary["warnings"] == ["no integer kernels for 1 x COS: they stay float"]


def test_names_that_repeat_or_look_like_patterns(data: Path) -> None:
    b = ModelBuilder()
    x = b.input("x;.*", (1, 8, 8, 3), "float32")
    x = b.conv2d(x, np.ones((4, 1, 1, 3), np.float32), name="(same")
    b._names.clear()
    x = b.conv2d(x, np.full((4, 1, 1, 4), 0.1, np.float32), name="(same")
    b.output(b.relu(x, name="t1"))
    info, summary = quantized(data, b.build(), keep_float=[{"name": "t1"}])
    assert [layer["dtype"] for layer in summary["layers"]] == ["int8", "int8", "float32"]
    assert [info.tensors[operator.outputs[0]].name for operator in info.operators[:2]] == ["(same", "(same"]
    assert info.tensors[info.inputs[0]].name == "x;.*"


def test_samples_are_spread_over_all_files(data: Path) -> None:
    """The third of six images is the only bright one."""
    bright = images()
    bright[2] *= 10
    np.save(data / "images.npy", bright)
    three = quantized(data, samples=3)[1]
    two = quantized(data, samples=2)[1]
    assert three["samples"] == 3 and three["layers"][0]["seen"][1] > 3 * two["layers"][0]["seen"][1]


def with_state() -> bytes:
    """The sum over two inputs of the last four inferences, which the quantizer leaves float."""
    b = ModelBuilder()
    x = b.input("x", (1, 2), "float32")
    y = b.svdf(x, np.ones((1, 2), np.float32), np.ones((1, 4), np.float32), activation="none", name="sums")
    b.output(b.fully_connected(y, np.ones((3, 1), np.float32), np.zeros(3, np.float32), name="dense"))
    return b.build()


def test_each_file_is_a_sequence_to_a_network_with_state(tmp_path: Path) -> None:
    """What is kept from the first file, or from the run before, would show in the sums of the second."""
    np.save(tmp_path / "a.npy", np.full((3, 2), 127, np.float32))
    np.save(tmp_path / "b.npy", np.full((6, 2), -128, np.float32))
    files = {"files": ["a.npy", "b.npy"]}
    out = run_ptq(tmp_path, with_state(), {"data": files, "evaluate": {"files": ["b.npy", "a.npy"]}})
    summary = json.loads((out / "ptq.json").read_text())
    (sums,) = (layer for layer in summary["layers"] if layer["name"] == "sums")
    assert (sums["seen"], sums["dtype"], sums["snr"]) == ([-1024, 762], "float32", MOST_DB)


def test_random_data_need_no_file(tmp_path: Path) -> None:
    drawn = {"random": {"low": 0.0, "high": 2.0, "seed": 7}}
    out = run_ptq(tmp_path, small_network(), {"data": drawn, "samples": 4})
    info = read((out / "model.tflite").read_bytes())
    assert info.tensors[info.inputs[0]].scale[0] == pytest.approx(2 / 255, rel=0.02)


def test_accuracy_is_counted_on_the_evaluation_data(data: Path) -> None:
    oracle = Reference(small_network())
    right = np.array([int(np.argmax(oracle.run([image[None]])[0])) for image in images(10, 5)], np.int32)
    right[:2] = (right[:2] + 1) % 5
    np.save(data / "test.npy", images(10, 5))
    np.save(data / "labels.npy", right)
    _, summary = quantized(data, evaluate={"files": ["test.npy"], "labels": "labels.npy"}, max_loss=100.0)
    shares = summary["accuracy"]
    assert (shares["samples"], shares["float"]) == (10, 0.8)
    assert summary["loss"] == pytest.approx(100 * (shares["float"] - shares["quantized"]))


def bad_network() -> bytes:
    """Channels of very different size share a scale behind the addition: 8 bits lose the small ones."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    small = b.conv2d(x, np.full((4, 1, 1, 3), 1e-4, np.float32), name="small")
    large = b.conv2d(x, np.full((4, 1, 1, 3), 50.0, np.float32), name="large")
    y = b.concatenation([small, large], name="joined")
    b.output(b.conv2d(y, np.eye(8, dtype=np.float32)[:4].reshape(4, 1, 1, 8), name="chosen"))
    return b.build()


def test_a_loss_beyond_the_bound_fails_and_names_the_layers(data: Path) -> None:
    with pytest.raises(StageError) as caught:
        quantized(data, bad_network(), min_snr=20.0)
    assert caught.value.at == ("stages", "quantize", "min_snr")
    first, second = str(caught.value).splitlines()
    assert first.startswith("the outputs are ") and first.endswith(" dB from the float network's; min_snr is 20")
    assert second.startswith("largest losses: ") and "conv2d 'chosen'" in second
    with pytest.raises(StageError) as caught:
        quantized(data, bad_network(), max_loss=1.0)
    assert "percentage points; max_loss is 1" in str(caught.value)
    assert caught.value.at == ("stages", "quantize", "max_loss")


def test_weights_that_are_integers_already_are_taken_as_their_numbers(data: Path) -> None:
    """Dynamic-range quantization: float32 data, int8 weights with a scale for each channel."""

    def network(weights: Any, **more: Any) -> bytes:
        b = ModelBuilder()
        x = b.input("x", (1, 8, 8, 3), "float32")
        b.output(b.conv2d(x, weights, np.zeros(4, np.float32), name="conv", **more))
        return b.build()

    stored = np.random.default_rng(3).integers(-127, 128, (4, 3, 3, 3), dtype=np.int8)
    scales = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    reals = (stored * scales.astype(np.float64)[:, None, None, None]).astype(np.float32)
    narrow, summary = quantized(data, network(stored, weight_scale=scales))
    plain, _ = quantized(data, network(reals))
    assert summary["warnings"] == ["1 integer constants of the file are dequantized before quantization"]
    for info in (narrow, plain):
        assert types(info) == [("CONV_2D", "int8", "int8")]
    ours, theirs = (info.tensors[info.operators[0].inputs[1]] for info in (narrow, plain))
    assert np.array_equal(ours.values(), theirs.values()) and np.array_equal(ours.scale, theirs.scale)


def test_constants_among_the_inputs_of_a_file_stay_constants(data: Path) -> None:
    """As old converters list them."""
    graph = one_graph(small_network(), "net", 0)
    graph.inputs += [index for operator in graph.operators for index in operator.inputs[1:]]
    info, _ = quantized(data, graph.pack())
    plain, _ = quantized(data)
    assert types(info) == types(plain)
    weights = [file_info.tensors[file_info.operators[0].inputs[1]] for file_info in (info, plain)]
    assert np.array_equal(weights[0].scale, weights[1].scale) and not weights[0].zero_point.any()


def half_quantized() -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    x = b.quantize(x, "int8", (0.1, 0))
    x = b.conv2d(x, np.ones((4, 1, 1, 3), np.int8), weight_scale=0.1, out=(0.1, 0), name="conv")
    b.output(b.dequantize(x))
    return b.build()


FIRST = ("data", "files", 0)
UNFIT: list[tuple[dict[str, Any], str, tuple[Any, ...]]] = [
    (
        {"data": {"files": ["bytes.npy"], "encoding": {"dtype": "int8"}}},
        "bytes.npy: holds uint8, its encoding says int8",
        FIRST,
    ),
    ({"data": {"files": ["nan.npy"]}}, "nan.npy[1]: element [0, 4, 2, 1] of the input x is nan", FIRST),
    ({"samples": 7}, "the data files hold 6 inferences, but samples is 7", ("samples",)),
    (
        {"evaluate": {"files": ["images.npy"], "labels": "five.npy"}},
        "five.npy: [5] int64 is not one integer class for each of the 6 inferences from quantize.evaluate.files",
        ("evaluate", "labels"),
    ),
    (
        {"evaluate": {"files": ["images.npy"], "labels": "high.npy"}},
        "high.npy: label 5 of inference 5 is not a class: the network's first output has classes 0 to 4",
        ("evaluate", "labels"),
    ),
]


@pytest.mark.parametrize(("config", "message", "at"), UNFIT)
def test_data_that_do_not_fit(data: Path, config: dict[str, Any], message: str, at: tuple[Any, ...]) -> None:
    np.save(data / "bytes.npy", np.zeros((3, 8, 8, 3), np.uint8))
    spoilt = images()
    spoilt[1, 4, 2, 1] = np.nan
    np.save(data / "nan.npy", spoilt)
    np.save(data / "five.npy", np.zeros(5, np.int64))
    np.save(data / "high.npy", np.arange(6))
    with pytest.raises(StageError) as caught:
        quantized(data, **config)
    assert str(caught.value).startswith(message)
    assert caught.value.at == ("stages", "quantize", *at)
    assert len(str(caught.value).splitlines()) <= 5


def test_a_file_that_is_quantized_in_part_is_refused(data: Path) -> None:
    with pytest.raises(StageError) as caught:
        quantized(data, half_quantized())
    first, second, _ = str(caught.value).splitlines()
    assert first == "net.tflite is not a float32 network: 2 of its 6 tensors have other types"
    assert second == "(1 'quantize': int8, 4 'conv': int8)"
    assert caught.value.at == ("stages", "quantize", "mode")


def test_a_network_that_overflows_on_its_data_is_refused(data: Path) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 3), "float32")
    x = b.conv2d(x, np.full((1, 1, 1, 3), 3e38, np.float32), name="big")
    b.output(b.mul(x, x, name="square"))
    with pytest.raises(StageError, match=r"the float network's tensor \d+ 'big' leaves the range of float32 on "):
        quantized(data, b.build())


def test_a_ruined_network_and_few_samples_are_reported(data: Path) -> None:
    """Whether or not the recipe has a limit."""
    _, summary = quantized(data, bad_network())
    (line,) = summary["warnings"]
    assert summary["snr"] < 10
    assert line.startswith(
        f"the quantized network differs a lot from the float one: its outputs are {summary['snr']:.1f} dB"
    )
    assert "largest losses: " in line and "conv2d 'chosen'" in line
    _, summary = quantized(data, samples=1)
    assert summary["warnings"][0].startswith("the ranges come from 1 sample: ")
    # Labels that only the float network gives.
    np.save(
        data / "labels.npy",
        np.array([int(np.argmax(Reference(bad_network()).run([image[None]])[0])) for image in images()]),
    )
    _, summary = quantized(data, bad_network(), evaluate={"files": ["images.npy"], "labels": "labels.npy"})
    assert (
        summary["loss"] > 10
        and f"its accuracy is {summary['loss']:.1f} percentage points lower" in summary["warnings"][0]
    )
