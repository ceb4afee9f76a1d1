"""WAV files for tests."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np


def write_wav(path: Path, samples: np.ndarray, rate: int = 16_000, channels: int = 1, width: int = 2) -> Path:
    """Write samples; with other channels or width the bytes are what they are."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return path
