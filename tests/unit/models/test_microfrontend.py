"""The front end of micro_speech: features of pymicro-features, bit for bit, and tables for other parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.build import build_frontend
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend
from stages.ir.models.chain.frontends.microfrontend_tables import filter_bank
from stages.ir.reference.partitions import reference_of
from tests.support.stages_run import verified

FEATURE = 0.0390625


def signals() -> dict[str, np.ndarray]:
    rng, times = np.random.default_rng(0), np.arange(8000)
    steps = np.zeros(8000, np.int16)
    steps[[1000, 3000]] = 32767, -32768
    steps[4000 + 160 : 8000 : 161] = -32768  # at all places of a frame, also in the middle, where weights are 1
    clipped = np.clip(60_000 * np.sin(times * 0.3), -32768, 32767).astype(np.int16)
    drawn = {f"noise of {level}": rng.integers(-level, level + 1, 8000).astype(np.int16) for level in (3, 300, 32767)}
    sweep = (30000 * np.sin(times**2 * 4e-5)).astype(np.int16)
    return {**drawn, "sweep": sweep, "steps": steps, "clipped": clipped, "silence": np.zeros(8000, np.int16)}


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("name", signals())
def test_features_are_those_of_pymicro_features(name: str, frames: int) -> None:
    pymicro_features = pytest.importorskip("pymicro_features", reason="./bootstrap --with audio pytest runs it")
    pytest.importorskip("tflite_micro", reason="./bootstrap --with audio pytest runs it")
    samples, theirs, position = signals()[name], [], 0
    heard = np.concatenate([np.zeros(320, np.int16), samples]).tobytes()  # silence before the first sample
    micro = pymicro_features.MicroFrontend()
    while position + 320 <= len(heard):
        output = micro.process_samples(heard[position : position + 320])
        position += 2 * output.samples_read
        if output.features:
            theirs.append(np.rint(np.array(output.features) / FEATURE).astype(int))
    reference = reference_of(build_frontend(MicroFrontend(), Features(frames)))
    step = 160 * frames
    ours = [np.array(reference.run([samples[None, at : at + step]])[0]) for at in range(0, 8000 // step * step, step)]
    ours_by_frame = np.concatenate([rows.reshape(-1, 40) for rows in ours])
    np.testing.assert_array_equal(ours_by_frame, theirs[: len(ours_by_frame)])


@pytest.mark.parametrize("out_scale", [1.0, 25.6])
def test_without_the_logarithm_features_are_the_clipped_amplitudes(out_scale: float, tmp_path: Path) -> None:
    """Also in the firmware, as int8. Their logarithm is that of the features with it, which pymicro-features has."""
    pytest.importorskip("tflite_micro", reason="./bootstrap --with audio pytest runs it")
    options = MicroFrontend(log=False, out_scale=out_scale, pcan=False)
    plain = reference_of(build_frontend(options, Features(1)))
    logarithms = reference_of(build_frontend(MicroFrontend(pcan=False), Features(1)))
    largest = 0.0
    for level in (0.01, 1, 30_000):
        for step in np.rint(level * np.random.default_rng(1).uniform(-1, 1, (20, 1, 160))).astype(np.int16):
            feature, logarithm = (np.array(reference.run([step])[0]) for reference in (plain, logarithms))
            amplitudes = feature.astype(np.float64) * out_scale
            inside = (amplitudes >= 1) & (amplitudes < 65_534)
            expected = 64 * np.log(np.maximum(amplitudes, 1) * 8)
            assert np.abs(expected - logarithm)[inside].max(initial=0) <= 1
            largest = max(largest, amplitudes.max())
    assert largest > 1_000
    square = (32_000 * np.sign(np.sin(np.arange(1600) * np.pi / 8))).astype(np.int16).reshape(10, 1, 160)
    loudest = max(np.array(plain.run([step])[0]).max() for step in square)
    assert loudest == np.float32(65_535) / np.float32(out_scale)
    quantized = build_frontend(options, Features(1, "int8", 100 / out_scale, -128))
    assert verified(quantized, "host", tmp_path, {"simulate": {"inputs": {"random": 4}}})["mismatches"] == 0


def test_each_bin_of_the_filter_bank_is_divided_between_two_channels() -> None:
    """Also where channels are narrower than a bin and read the block of zeros."""
    for channels, low, high, fft_length in ((40, 125.0, 7500.0, 512), (80, 20.0, 7900.0, 256), (1, 300.0, 4000.0, 64)):
        bank = filter_bank(channels, low, high, 16_000, fft_length)
        weight, unweight = np.zeros(fft_length // 2 + 4), np.zeros(fft_length // 2 + 4)
        tables = bank.tables
        for start, place, width in zip(tables["starts"], tables["places"], tables["widths"], strict=True):
            weight[start : start + width] += tables["weights"][place : place + width]
            unweight[start : start + width] += tables["unweights"][place : place + width]
        total = weight + unweight
        assert np.all(np.abs(total[bank.start : bank.end] - 4096) <= 1)
        assert not total[: bank.start].any() and not total[bank.end :].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"upper_hz": 8000.0}, "must be below half the sample rate"),
        ({"lower_hz": 900.0, "upper_hz": 800.0}, "is not above lower_hz"),
        ({"step_ms": 40.0}, "is longer than the frame of 30 ms"),
        ({"window_ms": 1.0, "step_ms": 1.0}, "a frame of 16 samples; it must have 33 to 2,048"),
        ({"step_ms": 0.01}, "is less than one sample"),
        ({"log": False, "log_shift": 6}, "has no effect with `log: false`"),
        ({"out_scale": 2.0}, "has no effect with `log: true`"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MicroFrontend(**options)


def test_the_firmware_ignores_the_lowest_sample_as_the_formula_does(tmp_path: Path) -> None:
    """Frames of -32,768 and zeros, with other samples, at both ends, and without it."""
    b = ModelBuilder()
    x = b.input("x", (4, 8), "int16")
    scaled, bits = b.tensor("scaled", (4, 8), "int16"), b.tensor("bits", (4,), "int32")
    b.operator("CUSTOM:FirmlineFftAutoScale", [x], [scaled, bits])
    b.output(scaled, bits)
    frames = np.zeros((1, 4, 8), np.int16)
    frames[0, 0, 3], frames[0, 1, [0, 7]], frames[0, 1, 4], frames[0, 2, 5] = -32768, -32768, 5, -300
    np.save(tmp_path / "frames.npy", frames)
    inputs = {"random": 2, "files": [str(tmp_path / "frames.npy")]}
    result = verified(b.build(), "host", tmp_path, {"simulate": {"inputs": inputs}})
    assert result["mismatches"] == 0
    assert reference_of(b.build()).run([frames[0]])[1].tolist() == [15, 12, 6, 0]


def test_tflms_conversion_needs_its_scale() -> None:
    options = MicroFrontend(conversion="tflm")
    with pytest.raises(StageError, match=r"the network reads int8, scale 0.05, zero point -128"):
        build_frontend(options, Features(1, "int8", 0.05, -128))
