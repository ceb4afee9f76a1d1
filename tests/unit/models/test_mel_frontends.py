"""Front ends log_mel and mfcc: their integers against float64, and bad options."""

import re
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.fft
import scipy.signal
import yaml
from pydantic import ValidationError

from stages.ir.model_info import TensorInfo
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.build import build_frontend
from stages.ir.models.chain.frontends.mel import LogMel, MelFrontend, Mfcc
from stages.ir.models.chain.frontends.mel_operators import window
from stages.ir.models.tflite_reader import read
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS
from tests.support.shared_models import FOLDER
from tests.support.stages_run import run_tflite

Array = npt.NDArray[Any]

RATE = 16_000
SPEECH = FOLDER / "inputs" / "speech"
FRONTENDS = f"""
mfcc: {{kind: mfcc}}
log_mel: {{kind: log_mel}}
librosa: {{kind: mfcc, window_samples: 2048, step_samples: 512, mels: 128, coefficients: 20}}
htk speech:
  {{kind: mfcc, window_ms: 25, pre_emphasis: 0.97, window: hamming, symmetric: true, mel_scale: htk, norm: none,
   lower_hz: 20, upper_hz: 7600, log: natural, full_scale: 32768, floor: 1, lifter: 22, coefficients: 13}}
magnitudes:
  {{kind: log_mel, power: 1, mel_scale: htk, norm: none, lower_hz: 80, upper_hz: 7600, log: natural, offset: 1.0e-6,
   floor: 1.0e-30, window_ms: 40, step_ms: 20}}
edge impulse:
  {{kind: log_mel, window_ms: 20, step_ms: 10, fft_length: 512, window: none, pre_emphasis: 0.98, edges: edge_impulse,
   mel_scale: htk, norm: none, per_point: true, floor: 1.0e-30, mean: -52, std: 64, mels: 32, lower_hz: 300}}
log10:
  {{kind: mfcc, log: log10, dct_norm: none, fft_length: 1024, power: 1, offset: 1.0e-4, mels: 26, mean: {[1] * 13},
   std: {[2] * 13}}}
"""
OPTIONS: dict[str, MelFrontend] = {
    name: {"mfcc": Mfcc, "log_mel": LogMel}[options["kind"]].model_validate(options)
    for name, options in yaml.safe_load(FRONTENDS).items()
}


def sounds() -> dict[str, Array]:
    """One second of noise at several levels, tones, a chirp, impulses, silence; and the recordings, if present."""
    rng, t = np.random.default_rng(1), np.arange(RATE) / RATE
    noise = rng.standard_normal(RATE).clip(-4, 4) / 4
    signals = {f"noise {db} dB": noise * 10 ** (db / 20) for db in (0, -20, -40, -60)}
    signals |= {f"tone {db} dB": np.sin(2 * np.pi * 1000.3 * t) * 10 ** (db / 20) for db in (0, -40, -60)}
    signals["two tones"] = 0.5 * np.sin(2 * np.pi * 210 * t) + 0.01 * np.sin(2 * np.pi * 3333 * t)
    signals["chirp"] = np.sin(2 * np.pi * (50 * t + 3900 * t * t))
    signals["impulses"] = (np.arange(RATE) % 1777 == 0).astype(float)
    signals["square"] = np.sign(np.sin(2 * np.pi * 440 * t))
    signals["silence"] = np.zeros(RATE)
    result = {
        name: np.clip(np.rint(values * 32767), -32768, 32767).astype(np.int16) for name, values in signals.items()
    }
    for path in sorted(SPEECH.glob("*.wav")):
        with wave.open(str(path)) as file:
            result[path.stem] = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return result


def framed(options: MelFrontend, samples: Array) -> Array:
    """Return frames after silence; with pre-emphasis each begins with the sample before it."""
    size, step = options.frame_size + (options.pre_emphasis > 0), options.frame_step
    padded = np.concatenate([np.zeros(size - step, np.int16), samples])
    return np.lib.stride_tricks.sliding_window_view(padded, size)[::step]


def real_features(options: MelFrontend, frames: Array) -> Array:
    """Return the features by their definition in float64."""
    x = frames * (options.full_scale / 32768)
    if options.pre_emphasis:
        x = x[:, 1:] - options.pre_emphasis * x[:, :-1]
    size = options.frame_size
    turn = 2 * np.pi * np.arange(size) / (size - 1 if options.symmetric else size)
    windows = {"hann": 0.5 - 0.5 * np.cos(turn), "hamming": 0.54 - 0.46 * np.cos(turn), "none": np.ones(size)}
    power = np.abs(np.fft.rfft(x * windows[options.window], options.points)) ** options.power
    mel = power @ filters(options).T / (options.points if options.per_point else 1)
    logarithms = np.log2(np.maximum(mel + options.offset, options.floor))
    unit = {"natural": np.log(2), "log10": np.log10(2), "db": (30 - 10 * options.power) * np.log10(2)}[options.log]
    features = logarithms * unit
    if isinstance(options, Mfcc):
        norm = "ortho" if options.dct_norm == "ortho" else None
        features = scipy.fft.dct(features, type=2, norm=norm, axis=1)[:, : options.coefficients]
        if options.lifter:
            n = np.arange(options.coefficients)
            features *= 1 + options.lifter / 2 * np.sin(np.pi * (n + 1) / options.lifter)
    return (features - np.array(options.mean)) / np.array(options.std)


def filters(options: MelFrontend) -> Array:
    """Return the filters, float64[mels, bins]."""
    top = options.upper_hz if options.upper_hz is not None else options.sample_rate / 2
    if options.mel_scale == "htk":
        low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (options.lower_hz, top))
        corners = 700 * (10 ** (np.linspace(low, high, options.mels + 2) / 2595) - 1)
    else:
        low, high = (
            hertz * 3 / 200 if hertz < 1000 else 15 + np.log(hertz / 1000) * 27 / np.log(6.4)
            for hertz in (options.lower_hz, top)
        )
        mels = np.linspace(low, high, options.mels + 2)
        corners = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    norm = 2 / (corners[2:] - corners[:-2]) if options.norm == "slaney" else np.ones(options.mels)
    bins = np.arange(options.points // 2 + 1.0)
    if options.edges == "edge_impulse":
        corners = np.floor((options.points // 2 + 2) * corners / options.sample_rate)
    else:
        bins = bins * options.sample_rate / options.points
    left, middle, right = (part[:, None] for part in (corners[:-2], corners[1:-1], corners[2:]))
    return (
        np.asarray(np.maximum(0, np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle))))
        * (norm[:, None])
    )


def integers(data: bytes, frames: Array) -> tuple[Array, TensorInfo]:
    """Return what the file's operators make of frames, and the tensor of the features."""
    info, values = read(data, "front end"), frames
    for operator in info.operators:
        if operator.op.startswith("CUSTOM:Firmline"):
            operation = Operation.of(operator, info)
            constants = [tensor.values() for tensor in operation.inputs[1:] if tensor is not None]
            reference = OPERATORS[operator.op].litert.reference
            assert reference is not None
            (values,) = reference(operation, values, *constants)
            out = operation.outputs[0]
    return values, out


def integer_features(options: MelFrontend, frames: Array, features: Features) -> tuple[Array, float]:
    """Return the integer features as real numbers, and the step of the output."""
    values, out = integers(build_frontend(options, features), frames)
    scale, zero_point = float(out.scale[0]), int(out.zero_point[0])
    return (values.astype(np.float64) - zero_point) * scale, scale


@pytest.mark.parametrize("name", OPTIONS)
def test_signal_to_noise_is_above_40_db(name: str) -> None:
    """The signal is the features less their mean; where they are all alike, errors are at most two steps."""
    options, ratios = OPTIONS[name], {}
    for sound, samples in sounds().items():
        frames = framed(options, samples)
        expected = real_features(options, frames)
        result, step = integer_features(options, frames, Features())
        error, signal = result - expected, expected - expected.mean()
        if np.abs(signal).max() < step:
            assert np.abs(error).max() <= 2 * step, sound
        else:
            ratios[sound] = 10 * np.log10((signal**2).sum() / (error**2).sum())
    assert min(ratios.values()) >= 50, ratios


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", ["hann", "hamming"])
def test_windows_are_scipy_s(name: str, symmetric: bool) -> None:
    options = LogMel(window=name, symmetric=symmetric)  # type: ignore[arg-type]
    expected = scipy.signal.get_window(name, options.frame_size, fftbins=not symmetric)
    assert np.abs(window(options) / 2**30 - expected).max() < 1e-9


def test_features_of_8_bits_are_within_a_step() -> None:
    """With the scale of the network that reads them; all values are in range."""
    options = OPTIONS["mfcc"]
    frames = framed(options, sounds()["noise -20 dB"])
    for features in (Features(1, "int8", 4.5, 20), Features(1, "uint8", 4.5, 148), Features(1, "int8")):
        result, step = integer_features(options, frames, features)
        assert np.abs(result - real_features(options, frames)).max() <= 0.51 * step


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_ms": 40.0, "fft_length": 512}, "512 is less than the frame of 640 samples"),
        ({"step_ms": 0.05}, "is 0.8 samples at 16000 Hz; set step_samples: 1"),
        ({"fft_length": 500}, "500 FFT points; it must be a power of two from 16 to 8,192"),
        ({"window_ms": 1000.0}, "16384 FFT points"),
        ({"upper_hz": 8001.0}, "8001 Hz is above half the sample rate, 8000 Hz"),
        ({"lower_hz": 500.0, "upper_hz": 400.0}, "400 Hz is not above lower_hz, 500 Hz"),
        ({"mels": 200}, "filter 0 of 200, 0 to 30 Hz, has no bin"),
        ({"mels": 32, "edges": "edge_impulse", "window_ms": 16.0, "mel_scale": "htk"}, "filter 0 of 32, 0 to 116 Hz"),
        ({"coefficients": 41}, "41 coefficients of 40 mels; at most 40"),
        ({"step_ms": 10.03}, "is 160.48 samples at 16000 Hz; set step_samples: 160"),
        ({"sample_rate": 22050}, "is 661.5 samples at 22050 Hz; set window_samples: 662"),
        ({"step_ms": 31.0}, "the step of 496 samples is longer than the frame of 480 samples"),
        ({"mean": (1.0, 2.0)}, "has 2 values for 13 features"),
    ],
)
def test_options_that_do_not_fit_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Mfcc(**options)


def test_firmware_computes_the_formula_over_several_runs(tmp_path: Path) -> None:
    """Frames overlap from run to run; before the first sample there is silence."""
    options = Mfcc(pre_emphasis=0.97, mels=20, window_ms=16.0, step_ms=8.0, offset=1e-6)
    data, samples = build_frontend(options, Features(2, "int8")), sounds()["chirp"][: 8 * 256]
    expected = integers(data, framed(options, samples))[0]
    runs = run_tflite(data, [[run] for run in samples.reshape(8, 1, 256)], tmp_path)
    assert np.array_equal(np.concatenate([run.outputs[0] for run in runs]), expected)
    assert len(np.unique(expected)) > 50
