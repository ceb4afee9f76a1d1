"""Chains: the joined file computes what its parts compute one after the other; parts that do not fit are refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from pipeline.recipes.loader import _merge
from pipeline.recipes.model_entry import model_entry
from stages.base import StageError
from stages.import_model.chain import Network, joined
from stages.import_model.model_files import model_files
from stages.import_model.normalize import normalized
from stages.import_model.stage import _joined
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.chain.smooth import smoother
from stages.ir.models.chain.spec import ChainModel, Smooth
from stages.ir.models.tflite_reader import read
from stages.ir.reference.partitions import reference_of

FEATURES, SCORES = (0.05, -3), (1 / 256, -128)


def encoder(out: tuple[float, int] = FEATURES, outputs: int = 1) -> bytes:
    """int8[1, 4, 4, 2] to `outputs` times int8[1, 4, 4, 3]."""
    rng, b = np.random.default_rng(1), ModelBuilder()
    x = b.input("image", (1, 4, 4, 2), "int8", 0.1, 5)
    for number in range(outputs):
        weights = rng.integers(-127, 128, (3, 3, 3, 2), dtype=np.int8)
        b.output(b.conv2d(x, weights, weight_scale=0.01, out=out, name=f"code_{number}"))
    return b.build()


def decoder(shape: tuple[int, ...] = (1, 4, 4, 3), inputs: int = 1) -> bytes:
    """Inputs of a shape to int8[1, 2] scores."""
    rng, b = np.random.default_rng(2), ModelBuilder()
    tensors = [b.input(f"code_{number}", shape, "int8", *FEATURES) for number in range(inputs)]
    x = tensors[0] if inputs == 1 else b.add(tensors[0], tensors[1], out=(0.1, 0))
    weights = rng.integers(-127, 128, (2, int(np.prod(shape))), dtype=np.int8)
    flat = b.reshape(x, (1, weights.shape[1]))
    b.output(b.softmax(b.fully_connected(flat, weights, weight_scale=0.01, out=(0.3, 0))))
    return b.build()


def chain(*parts: Any) -> tuple[ChainModel, list[Network]]:
    """A chain of files (bytes, with options) and other parts (mappings)."""
    entries, networks = [], []
    for at, part in enumerate(parts):
        data, options = part if isinstance(part, tuple) else (part, {})
        if isinstance(data, bytes):
            networks.append(Network(at, f"net_{at}", normalized(data, f"net_{at}")))
            entries.append({"file": f"net_{at}.tflite", **options})
        else:
            entries.append(data)
    return TypeAdapter(model_entry({})).validate_python({"chain": entries}), networks


def run(data: bytes, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    reference = reference_of(data)
    return [[np.array(array) for array in reference.run(arrays)] for arrays in inputs]


def images(count: int, *shape: int) -> list[list[np.ndarray]]:
    return [[np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)] for seed in range(count)]


def test_joined_networks_compute_as_one_after_the_other() -> None:
    made = joined(*chain(encoder(), decoder((1, 1, 4, 4, 3))))
    inputs = images(3, 1, 4, 4, 2)
    codes = run(encoder(), inputs)
    expected = run(decoder((1, 1, 4, 4, 3)), [[code[0].reshape(1, 1, 4, 4, 3)] for code in codes])
    for ours, theirs in zip(run(made.file.data, inputs), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert [(part.name, part.start, part.end) for part in made.parts] == [("net_0", 0, 1), ("net_1", 1, 5)]
    assert {tensor.name.partition("/")[0] for tensor in made.file.info.tensors} == {"net_0", "net_1"}


def test_outputs_are_joined_by_name_and_the_rest_are_ends_of_the_chain() -> None:
    options = {"inputs": {"code_1": "code_0"}, "name": "decoder"}
    made = joined(*chain(encoder(outputs=2), (decoder(inputs=2), options)))
    info = made.file.info
    assert [info.tensors[i].name for i in info.inputs] == ["net_0/image", "decoder/code_0"]
    assert [info.tensors[i].name for i in info.outputs] == ["net_0/code_1", "decoder/softmax"]
    image, other = images(1, 1, 4, 4, 2)[0][0], images(1, 1, 4, 4, 3)[0][0]
    first, second = run(encoder(outputs=2), [[image]])[0]
    expected = run(decoder(inputs=2), [[other, first]])[0][0]
    np.testing.assert_array_equal(run(made.file.data, [[image, other]])[0][1], expected)
    np.testing.assert_array_equal(run(made.file.data, [[image, other]])[0][0], second)


def test_convert_requantizes() -> None:
    made = joined(*chain(encoder((0.07, 9)), (decoder(), {"convert": True})))
    b = ModelBuilder()
    b.output(b.quantize(b.input("x", (1, 4, 4, 3), "int8", 0.07, 9), "int8", FEATURES))
    inputs = images(3, 1, 4, 4, 2)
    expected = run(decoder(), run(b.build(), run(encoder((0.07, 9)), inputs)))
    np.testing.assert_array_equal(run(made.file.data, inputs), expected)


@pytest.mark.parametrize(("source", "reader"), [("int16", "uint8"), ("uint8", "int16")])
def test_convert_between_uint8_and_int16(source: str, reader: str) -> None:
    quantization = {"int16": (0.01, 0), "uint8": (0.02, 130)}
    parts = [
        reshaped((shape, dtype, *quantization[dtype]), result)
        for dtype, shape, result in ((source, (1, 200), (200, 1)), (reader, (200, 1), (1, 200)))
    ]
    made = joined(*chain(parts[0], (parts[1], {"convert": True})))
    x = np.linspace(*((-400, 396) if source == "int16" else (0, 255)), 200).round().astype(source)
    (scale, zero), (new_scale, new_zero) = quantization[source], quantization[reader]
    low, high = (0, 255) if reader == "uint8" else (-(1 << 15), (1 << 15) - 1)
    real = (x.astype(np.int64) - zero) * round(scale * 100) / round(new_scale * 100)
    expected = np.clip(np.sign(real) * np.floor(np.abs(real) + 0.5) + new_zero, low, high)
    np.testing.assert_array_equal(run(made.file.data, [[x[None]]])[0][0].reshape(-1), expected)


@pytest.mark.parametrize(
    ("dtype", "window", "index"), [("int8", 1, None), ("uint8", 3, 1), ("float32", 4, 0), ("int8", 5, 2)]
)
def test_smooth_is_the_mean_of_the_last_scores(dtype: str, window: int, index: int | None) -> None:
    b, count = ModelBuilder(), 1 if index is None else 3
    scale, zero = (None, 0) if dtype == "float32" else (1 / 256, 0 if dtype == "uint8" else -128)
    b.output(b.reshape(b.input("x", (1, count), dtype, scale, zero), (1, count)))
    source = read(b.build()).tensors[0]
    options = Smooth(window=window, threshold=0.4, index=index)
    rng, earlier = np.random.default_rng(window), [Fraction(0)] * window
    numbers = rng.random((12, 1, count))
    low, high = (0, 1) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    inputs = [[(low + (high - low) * number).astype(dtype)] for number in numbers]
    for (scores,), (mean, detected) in zip(inputs, run(smoother(options, source, "net"), inputs), strict=True):
        earlier = [*earlier[1:], Fraction(float(scores[0, index or 0])) - zero]
        exact = sum(earlier) / window
        # MEAN multiplies by a rounded 1 / window.
        assert abs(Fraction(float(mean[0, 0])) - zero - exact) < (1 if scale else Fraction(1, 10**6))
        real = float(mean[0, 0]) if scale is None else (float(mean[0, 0]) - zero) * scale
        assert detected[0, 0] == (real > 0.4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_smooth_decides_for_each_score(dtype: str) -> None:
    """A list of thresholds; null is never detected."""
    scale, zero = (None, 0) if dtype == "float32" else (1 / 256, 0 if dtype == "uint8" else -128)
    source = read(reshaped(((1, 3), dtype, scale, zero))).tensors[0]
    highest = np.ones((1, 3), "float32") if dtype == "float32" else np.full((1, 3), np.iinfo(dtype).max, dtype)
    middle = np.array([[0.55, 0.55, 0.55]], "float32") if scale is None else np.full((1, 3), 141 + zero, dtype)
    options = Smooth(window=1, threshold=(0.5, None, 0.6))
    decisions = [row[1].tolist() for row in run(smoother(options, source, "net"), [[highest], [middle]])]
    assert decisions == [[[True, False, True]], [[True, False, False]]]


def reshaped(source: tuple[Any, ...], shape: tuple[int, ...] = (-1,)) -> bytes:
    """A network that reads (shape, dtype, scale, zero point) and reshapes it."""
    b = ModelBuilder()
    b.output(b.reshape(b.input("x", *source), shape))
    return b.build()


def test_codes_without_a_scale_have_that_of_their_reader() -> None:
    parts = reshaped(((200, 1), "int8", None, 0)), reshaped(((1, 200), "int8", 0.1, 3), (200, 1))
    made = joined(*chain(parts[0], (parts[1], {"convert": True})))
    x = np.arange(-100, 100, dtype=np.int8).reshape(200, 1)
    np.testing.assert_array_equal(run(made.file.data, [[x]])[0][0], x)
    (output,) = (made.file.info.tensors[index] for index in made.file.info.outputs)
    assert (output.scale[0], output.zero_point[0]) == (np.float32(0.1), 3)


def streaming() -> bytes:
    """A network with state over 3 frames of 40 features per run."""
    b = ModelBuilder()
    flat = b.reshape(b.input("features", (1, 3, 40), "int8", 0.1, 0), (1, 120))
    weights = np.ones((6, 120), np.int8), np.ones((6, 3), np.int16)
    b.output(b.svdf(flat, *weights, scales=(0.01, 0.001, 0.001), out=(0.1, 0)))
    return b.build()


MICRO = {"frontend": {"kind": "microfrontend"}}


@pytest.mark.parametrize(
    ("parts", "message", "at"),
    [
        ((encoder(), encoder()),
         "net_0 writes int8 of scale 0.05, zero point -3; net_1 reads int8 of scale 0.1, zero point 5", (1,)),
        ((encoder(), decoder((1, 4, 3, 4))), "net_0 writes [1, 4, 4, 3]; net_1 reads [1, 4, 3, 4]", (1,)),
        ((encoder(), decoder((1, 4, 4, 6))), "net_0 writes [1, 4, 4, 3]; net_1 reads [1, 4, 4, 6]", (1,)),
        ((encoder(), decoder(inputs=2)), "net_0 has 1 outputs, net_1 2 inputs", (1,)),
        ((encoder(), (decoder(), {"inputs": {"cod": "code_0"}})), "net_1 has no input 'cod'", (1, "inputs", "cod")),
        ((encoder(), (decoder(), {"inputs": {"code_0": "code"}})), "net_0 has no output 'code'",
         (1, "inputs", "code_0")),
        ((decoder(), {"smooth": {"threshold": [0.5, 0.5, 0.5]}}), "3 thresholds, but net_0 writes 2 scores",
         (1, "smooth", "threshold")),
        ((decoder(), {"smooth": {"index": 2}}), "smooth has index 2; net_0 writes 2 scores, 0 to 1",
         (1, "smooth", "index")),
        ((decoder(), {"smooth": {"index": 1, "threshold": 1.0}}), "the threshold 1 is outside of the scores",
         (1, "smooth", "threshold")),
        ((encoder(outputs=2), {"smooth": {}}), "smooth needs one output before it, but net_0 has 2", (1,)),
        ((MICRO, reshaped(((1, 1, 30), "int8", 0.1))), "net_1 reads [1, 1, 30]; the front end computes 40 features",
         (0, "frontend")),
        ((MICRO, decoder()), "net_1 reads [1, 4, 4, 3], which are not features: frames x channels", (1,)),
        (
            ({"frontend": {"kind": "microfrontend", "frames": 2}}, streaming()),
            "the front end computes 2 frames per run, but net_1 reads 3 and has state\nSet frames to 3.",
            (0, "frontend", "frames"),
        ),
        ((reshaped(((200, 1), "int16", None)), (reshaped(((1, 200), "int8", 0.1)), {"convert": True})),
         "zero point 0\nThis cannot be converted: integers without a scale can only be read as the same type.", (1,)),
        ((reshaped(((200, 1), "int8", None)), reshaped(((1, 200), "int8", 0.1))),
         "net_0 writes int8 without a scale; net_1 reads int8 of scale 0.1, zero point 0\nset `convert: true`", (1,)),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused_at_their_place(
    parts: tuple[Any, ...], message: str, at: tuple[str | int, ...]
) -> None:
    with pytest.raises(StageError) as error:
        joined(*chain(*parts))
    assert message in str(error.value) and error.value.at == ("model", "chain", *at)


@pytest.mark.parametrize(
    ("options", "at"), [({"incremental": {"axis": 3}}, ("incremental",)), ({"signature": "other"}, ("signature",))]
)
def test_errors_of_a_network_point_to_its_part(tmp_path: Path, options: dict[str, Any], at: tuple[str, ...]) -> None:
    (tmp_path / "b.tflite").write_bytes(decoder((1, 4, 12, 1)))
    entry = {"chain": [{"zoo": "ds_cnn"}, {"file": str(tmp_path / "b.tflite"), **options}]}
    model = TypeAdapter(model_entry({})).validate_python(entry)
    with pytest.raises(StageError) as error:
        _joined(model, model_files(model, tmp_path))
    assert error.value.at == ("model", "chain", 1, *at)


def test_another_network_replaces_the_one_of_a_chain() -> None:
    base = {
        "model": {"chain": [{"frontend": {"kind": "microfrontend"}}, {"zoo": "ds_cnn", "name": "word"}, {"smooth": {}}]}
    }
    changed = _merge(base, {"model": {"file": "net.tflite"}})["model"]["chain"]
    assert changed == [base["model"]["chain"][0], {"name": "word", "file": "net.tflite"}, {"smooth": {}}]
    two = {"model": {"chain": [{"zoo": "ds_cnn"}, {"zoo": "resnet_8"}]}}
    assert _merge(two, {"model": {"file": "net.tflite"}})["model"] == {"file": "net.tflite"}


@pytest.mark.parametrize("threshold", [0.1, 0.4, 0.5, 0.9])
def test_a_score_is_detected_above_the_threshold_only(threshold: float) -> None:
    b = ModelBuilder()
    b.output(b.reshape(b.input("x", (1, 1), "int8", *SCORES), (1, 1)))
    data = smoother(Smooth(window=1, threshold=threshold), read(b.build()).tensors[0], "net")
    scores = range(-128, 128)
    detected = [bool(found[0, 0]) for _, found in run(data, [[np.array([[score]], np.int8)] for score in scores])]
    assert detected == [(score + 128) / 256 > threshold for score in scores]
