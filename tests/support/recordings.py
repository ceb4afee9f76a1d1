"""WAV files for tests, and a network that takes their samples."""

import wave
from pathlib import Path

import numpy as np

from tests.support.variables import Streaming


def write_wav(path: Path, samples: np.ndarray, rate: int = 16_000, channels: int = 1, width: int = 2) -> Path:
    """Write samples; with other channels or width the bytes are what they are."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path


UNIT = (1 / 32768, 0)


def loudness() -> bytes:
    """Network with 10 ms per step: whether the mean of the last four steps (three are state) is above 0.1."""
    b = Streaming()
    x = b.input("samples", (1, 160), "int16", *UNIT)
    mean = b.fully_connected(x, np.full((1, 160), 127, np.int8), weight_scale=1 / 127 / 160, out=UNIT, name="mean")
    kept = b.resource("means", np.zeros((1, 3), np.int16), UNIT)
    means = b.concatenation([b.read(kept, (1, 3), "int16", UNIT), mean], 1, name="all")
    b.assign(kept, b.strided_slice(means, (0, 1), (1, 4), name="new"))
    weights, bias = np.full((1, 4), 100, np.int8), np.array([-40 * 32768], np.int64)  # 400 * (mean - 0.1)
    total = b.fully_connected(means, weights, bias, weight_scale=1.0, out=(64 / 32768, 0), name="sum")
    b.output(b.emit("LOGISTIC", [total], (1, 1), UNIT, "score"))
    return b.build()
