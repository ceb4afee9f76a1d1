"""The zoo: published sizes, real files' topology, the same bytes always, and layers that work."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.ir.model_info import ModelInfo
from stages.ir.models import zoo
from stages.ir.models.complexity import macs, operator_macs
from stages.ir.models.spec import ZooModel
from stages.ir.models.tflite_reader import read
from stages.ir.models.zoo.names import NAMES
from stages.ir.operators.table import OPERATORS
from stages.ir.reference import Reference, random_inputs
from tests.support.shared_models import shared_models

ROOT = Path(__file__).parents[3]
DTYPES = ("int8", "uint8", "float32")
SMALL = (
    "ds_cnn",
    "ds_cnn_1d",
    "mobilenet_v1_0.25_96_vww",
    "resnet_8",
    "autoencoder",
    "mobilenet_v1_0.25_128",
    "mobilenet_v2_0.35_96",
)


@pytest.mark.parametrize(
    ("name", "million_macs", "million_parameters"),
    [
        # Howard et al. 2017, tables 6, 7 and 8
        ("mobilenet_v1_1.0_224", 569, 4.2),
        ("mobilenet_v1_0.75_224", 325, 2.6),
        ("mobilenet_v1_0.5_224", 149, 1.3),
        ("mobilenet_v1_1.0_128", 186, 4.2),
        # TensorFlow-Slim's table of released v2 checkpoints
        ("mobilenet_v2_1.0_224", 300, 3.47),
        ("mobilenet_v2_1.4_224", 582, 6.06),
        ("mobilenet_v2_0.5_224", 97, 1.95),
        # Issue 3; Keras lists 23.9 M and TensorFlow-Slim 42.7 M parameters
        ("inception_v3_299", 5713, 23.8),
        ("inception_v4_299", 12270, 42.7),
    ],
)
def test_sizes_are_the_papers(name: str, million_macs: float, million_parameters: float) -> None:
    info = read(zoo.build(name))
    assert macs(info) / 1e6 == pytest.approx(million_macs, rel=0.02)
    assert _parameters(info) / 1e6 == pytest.approx(million_parameters, rel=0.035)


REAL = {
    "mlperf_tiny/kws_ref_model.tflite": ("ds_cnn", "int8"),
    "mlperf_tiny/vww_96_int8.tflite": ("mobilenet_v1_0.25_96_vww", "int8"),
    "mlperf_tiny/pretrainedResnet_quant.tflite": ("resnet_8", "int8"),
    "mlperf_tiny/ad01_int8.tflite": ("autoencoder", "int8"),
    "mlperf_tiny/str_ww_ref_model.tflite": ("ds_cnn_1d", "int8"),
    "mlperf_tiny/pretrainedResnet_large_int8.tflite": ("resnet_8_large", "int8"),
    "float/pretrainedResnet.tflite": ("resnet_8", "float32"),
    "hosted/mobilenet_v1_0.25_128_quant.tflite": ("mobilenet_v1_0.25_128", "uint8"),
    "hosted/mobilenet_v1_1.0_224_quant.stitched.tflite": ("mobilenet_v1_1.0_224", "uint8"),
    "hosted/mobilenet_v2_1.0_224_quant.tflite": ("mobilenet_v2_1.0_224", "uint8"),
}


@pytest.mark.parametrize("file", REAL)
def test_topology_is_that_of_the_real_file(file: str) -> None:
    (path,) = shared_models(file)
    real, ours = read(path.read_bytes()), read(zoo.build(*REAL[file]))
    assert _layers(ours) == _layers(real)
    assert macs(ours) == macs(real)
    assert _parameters(ours) == _parameters(real)


@pytest.mark.parametrize(
    ("name", "total_macs", "outputs"),
    [
        # The frames and channels of the benchmark's keras_model.py for streaming wake word ...
        ("ds_cnn_1d", 826_368, "28x1x40 28x1x128 24x1x128 24x1x128 15x1x128 15x1x128 1x1x128 1x1x32 32 3 3"),
        # ... and those of the larger ResNet-8 of image classification.
        ("resnet_8_large", 76_473_920, f"{'32x32x40 ' * 4}{'16x16x80 ' * 4}{'8x8x160 ' * 4}1x1x160 160 10 10"),
    ],
)
def test_layers_of_mlperf_tiny_1_4(name: str, total_macs: int, outputs: str) -> None:
    info = read(zoo.build(name))
    assert macs(info) == total_macs
    shapes = [info.tensors[op.outputs[0]].shape[1:] for op in info.operators]
    assert " ".join("x".join(map(str, shape)) for shape in shapes) == outputs


def _layers(info: ModelInfo) -> list[tuple[str, int, list[tuple[str, tuple[int, ...]]]]]:
    """Per operator: kind, MACs, and dtype and shape of every tensor it touches, in order."""
    return [
        (
            op.op,
            operator_macs(info, op),
            [(info.tensors[index].dtype, info.tensors[index].shape) for index in (*op.inputs, *op.outputs)],
        )
        for op in info.operators
    ]


def test_another_blas_kernel_and_thread_count_give_the_same_bytes() -> None:
    script = "import sys; from stages.ir.models import zoo; sys.stdout.buffer.write(zoo.build('resnet_8', 'uint8'))"
    environment = os.environ | {"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1"}
    other = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert other.stdout == zoo.build("resnet_8", "uint8")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", SMALL)
def test_quantized_networks_compute_what_the_float_one_does(name: str, dtype: str) -> None:
    codes, floats = Reference(zoo.build(name, dtype)), Reference(zoo.build(name, "float32"))
    image = random_inputs(codes.info, 5)[0]
    codes.run([image])
    floats.run([_real(codes, codes.info.inputs[0], image).astype(np.float32)])
    before = 0.0
    for quantized, plain in zip(codes.info.operators, floats.info.operators, strict=True):
        want = floats.tensor(plain.outputs[0])
        if want.size < 100 or quantized.op == "SOFTMAX":
            continue
        got = _real(codes, quantized.outputs[0], codes.tensor(quantized.outputs[0]))
        error = float(np.sqrt(np.mean((got - want) ** 2)) / want.std())
        # Rounding adds up from layer to layer, in random networks more than in trained ones; a wrong bias or scale
        # would be a leap.
        assert error < 1.3 * before + 0.03, floats.info.tensors[plain.outputs[0]].name
        before = error


def _real(oracle: Reference, index: int, values: np.ndarray) -> np.ndarray:
    tensor = oracle.info.tensors[index]
    return (values.astype(np.float64) - tensor.zero_point[0]) * tensor.scale[0]


def test_unknown_name_lists_what_is_near() -> None:
    with pytest.raises(StageError, match=r"mobilnet_v1_1\.0_224.*did you mean 'mobilenet_v1_1\.0_224'") as caught:
        zoo.build("mobilnet_v1_1.0_224")
    assert "resnet_8" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 5
    with pytest.raises(StageError, match="Known: "):
        zoo.build("qqqq")


def test_names_are_those_that_are_built() -> None:
    assert zoo.topologies().keys() == NAMES


@pytest.mark.parametrize("bits", [2, 4, 7])
def test_weights_of_fewer_bits_fit_them_and_say_it_in_no_other_way(bits: int) -> None:
    """int8 in the file, so that LiteRT computes them as ever; every layer still computes something."""
    narrow, wide = (read(zoo.build("ds_cnn", bits=count)) for count in (bits, 8))
    for one, other in zip(narrow.operators, wide.operators, strict=True):
        assert one.op == other.op
        if one.op in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            weights = narrow.tensors[one.inputs[1]]
            assert weights.dtype == "int8"
            assert np.abs(weights.values().astype(int)).max() == (1 << bits - 1) - 1
    reference = Reference(zoo.build("ds_cnn", bits=bits))
    outputs = {reference.run(random_inputs(reference.info, seed))[0].tobytes() for seed in range(4)}
    assert len(outputs) > 1


def test_narrow_weights_are_int8() -> None:
    with pytest.raises(ValidationError, match="4-bit weights go with dtype int8, not uint8"):
        ZooModel.model_validate({"zoo": "ds_cnn", "dtype": "uint8", "weights": {"bits": 4}})
    with pytest.raises(ValidationError, match="bits"):
        ZooModel.model_validate({"zoo": "ds_cnn", "weights": {"bits": 9}})


def _parameters(info: ModelInfo) -> int:
    """Trained values: elements of all weights and biases; a tensor used twice counts once."""
    weighted = {name for name, operator in OPERATORS.items() if operator.weights.macs is not None}
    used = {index for op in info.operators if op.op in weighted for index in op.inputs[1:] if index >= 0}
    return sum(math.prod(info.tensors[index].shape) for index in used if info.tensors[index].data is not None)
