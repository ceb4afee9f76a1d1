"""A synthetic voice that speaks vowels: a source of pulses through three resonators, the formants.

Formant frequencies are rough averages of Peterson and Barney (1952) for the vowels a, e, i, o and u.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Array = npt.NDArray[np.float64]

RATE = 16_000  # Hz
VOWELS = {
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
}
_BLOCK = RATE // 200  # samples with constant formants
_BANDWIDTHS = (80, 100, 150)  # Hz


def speak(vowels: str, random: np.random.RandomState) -> Array:
    """Return the vowels as one speaker says them: pitch, vocal tract and speed are random. Peaks at 1."""
    length, tract = random.uniform(0.09, 0.15), random.uniform(0.88, 1.18)
    targets = np.array([VOWELS[vowel] for vowel in vowels]) * tract
    blocks = int(length * len(vowels) * RATE / _BLOCK)
    # Half of each vowel is steady, then the formants glide to the next.
    places = np.clip((np.arange(blocks) / blocks * len(vowels) - 0.5) * 1.6, 0, len(vowels) - 1)
    formants = np.array([np.interp(places, np.arange(len(vowels)), track) for track in targets.T]).T
    sound, states = _source(blocks * _BLOCK, random), [np.zeros(2) for _ in _BANDWIDTHS]
    result = np.zeros(len(sound))
    for block, frequencies in enumerate(formants):
        part = slice(block * _BLOCK, (block + 1) * _BLOCK)
        x = sound[part]
        for number, (frequency, bandwidth) in enumerate(zip(frequencies, _BANDWIDTHS, strict=True)):
            radius = np.exp(-np.pi * bandwidth / RATE)
            poles = [1, -2 * radius * np.cos(2 * np.pi * frequency / RATE), radius**2]
            x, states[number] = lfilter([sum(poles)], poles, x, zi=states[number])
        result[part] = x
    edge = np.minimum(1, np.arange(len(result)) / (0.02 * RATE))
    result *= edge * edge[::-1]
    return result / np.abs(result).max()


def _source(samples: int, random: np.random.RandomState) -> Array:
    """Return pulses of a falling pitch, with breath."""
    pitch = random.uniform(90, 240) * np.linspace(1.05, 0.9, samples)
    phase = np.cumsum(pitch) / RATE
    pulses = np.diff(np.floor(phase), prepend=0.0)
    return np.asarray(pulses + 0.01 * random.standard_normal(samples))
