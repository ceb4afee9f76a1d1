"""Weights of few bits that are kept so in ROM: the same bytes out, less of constants, whatever kernel reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stages.models.builder import ModelBuilder
from stages.models.spec import FileModel
from stages.reference.interpreter import Reference, random_inputs
from stages.tensorize.narrow import bits_of_constant
from tests.support.emitted import run_emitted, target_named
from tests.support.stages_run import run_stages


def network(bits: int) -> bytes:
    """Three kinds of weights in so many bits; odd numbers of them, so that the last byte is half full."""
    rng, b, most = np.random.default_rng(bits), ModelBuilder(), 1 << bits - 1

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-most, most, shape).astype(np.int8)

    x = b.input("x", (1, 6, 5, 9), "int8", 0.05, 3)
    y = b.conv2d(x, weights(11, 3, 3, 9), weight_scale=0.02, out=(0.1, -4))
    y = b.depthwise_conv2d(y, weights(1, 3, 3, 11), weight_scale=0.03, out=(0.1, 2))
    b.output(b.fully_connected(b.reshape(y, (1, -1)), weights(3, 330), weight_scale=0.02, out=(0.5, 1)))
    return b.build()


def made(folder: Path, target: str, tflite: bytes, *, narrow: bool) -> Path:
    folder.mkdir()
    (folder / "model.tflite").write_bytes(tflite)
    model, configs = FileModel(file=str(folder / "model.tflite")), {"tensorize": {"narrow_weights": narrow}}
    return run_stages(model, target_named(target), folder / "made", configs=configs)["emit"]


@pytest.mark.parametrize(("bits", "target"), [(4, "host"), (4, "rv32-rvp"), (2, "host"), (1, "host")])
def test_they_take_less_rom_and_change_nothing(tmp_path: Path, bits: int, target: str) -> None:
    tflite = network(bits)
    reference = Reference(tflite)
    given = [random_inputs(reference.info, seed) for seed in (1, 2)]
    kept, wide = (made(tmp_path / str(narrow), target, tflite, narrow=narrow) for narrow in (True, False))
    for inputs, inference in zip(given, run_emitted(kept, target_named(target), given), strict=True):
        np.testing.assert_array_equal(inference.outputs[0], reference.run(inputs)[0])
    small, large = (json.loads((folder / "model.json").read_text())["weights_bytes"] for folder in (kept, wide))
    assert large - small > 0.9 * (11 * 81 + 3 * 330) * (8 - bits) / 8


def test_weights_of_whole_bytes_stay_as_they_are(tmp_path: Path) -> None:
    tflite = network(8)
    kept, wide = (made(tmp_path / str(narrow), "host", tflite, narrow=narrow) for narrow in (True, False))
    for file in ("model.c", "layers.c", "weights.bin"):
        assert (kept / "src" / file).read_bytes() == (wide / "src" / file).read_bytes()


@pytest.mark.parametrize(
    ("values", "dtype", "bits"),
    [([-8, 7], "int8", 4), ([-9], "int8", 0), ([8], "int8", 0), ([-2, 1], "int8", 2), ([-1, 0], "int8", 1),
     ([1], "uint8", 0), ([1], "int32", 0), ([-5], "int8", 4)],
)  # fmt: skip
def test_bits_of_constants(values: list[int], dtype: str, bits: int) -> None:
    assert bits_of_constant(np.resize(np.array(values, dtype), 64)) == bits
    assert bits_of_constant(np.resize(np.array(values, dtype), 63)) == (0 if dtype != "int32" else bits)
