"""Trains the network of `recipes/wake_word.yaml` and writes its recording. From the project's root:

    ./bootstrap --with audio python -m recipes.wake_word.train

The wake word is "aio", spoken by a synthetic voice (voice.py): no recordings of people are needed, and none are in the
project. Written beside this file:

    wake_word_int8.tflite  int8[1, 50, 1, 40] features, half a second, to a score
    words.wav              wake words, other words, noise and silence
    words.txt              where the wake words are, as a label track of Audacity

Takes about a minute. Another machine's BLAS may sum in another order, so its network may differ in the last bits.
"""

from __future__ import annotations

import wave
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from recipes.digits.network import Adam
from recipes.wake_word.voice import RATE, VOWELS, speak
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.build import build_frontend
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend
from stages.ir.reference.partitions import reference_of

Array = npt.NDArray[np.float32]

FOLDER = Path(__file__).parent
WORD = "aio"
SCALE, ZERO_POINT = 26 / 255, -128  # of features, as micro wake word has them
WINDOW, STEP = 50, 160  # frames that the network reads; samples from one frame to the next
TAPS, STRIDE, CHANNELS = 5, 3, 16
LATE = 10  # frames after the word in which it counts as detected
SEED, CLIPS, EPOCHS, BATCH, RATE_OF_LEARNING, DECAY = 35, 1200, 30, 64, 3e-3, 3e-3


def clip(word: str, random: np.random.RandomState, seconds: float = 1.2) -> tuple[npt.NDArray[np.int16], int, int]:
    """Return samples of the word ('' for none) with noise, and start and end of the word in samples."""
    samples, start, end = int(seconds * RATE), 0, 0
    noise = np.convolve(random.standard_normal(samples), random.standard_normal(8) / 3, "same")
    sound = noise * 10 ** random.uniform(-4, -1.7)
    if word:
        voice = speak(word, random) * 10 ** random.uniform(-1.2, -0.1)
        start = random.randint(0, samples - len(voice) - LATE * STEP)
        end = start + len(voice)
        sound[start:end] += voice
    elif random.rand() < 0.5:
        times = np.arange(samples) / RATE
        sound += 0.3 * random.rand() * np.sin(2 * np.pi * random.uniform(100, 4000) * times)
    return np.clip(np.rint(sound * 32767), -32768, 32767).astype(np.int16), start, end


def features(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.int8]:
    """Return int8[frames, 40], computed by the front end's reference."""
    reference = reference_of(build_frontend(MicroFrontend(), Features(1, "int8", SCALE, ZERO_POINT)))
    starts = range(0, len(samples) - STEP + 1, STEP)
    return np.array([reference.run([samples[None, start : start + STEP]])[0].reshape(-1) for start in starts], np.int8)


def examples(random: np.random.RandomState, count: int) -> tuple[Array, Array]:
    """Return windows of real features, [N, 50, 40], and whether each ends just after the wake word."""
    others = ["".join(word) for word in product(VOWELS, repeat=3) if "".join(word) != WORD]
    windows, labels = [], []
    for number in range(count):
        other, begun = others[random.randint(len(others))], WORD[: 1 + random.randint(2)]
        word = (WORD, other, other, "", begun)[number % 5]
        samples, _, end = clip(word, random)
        rows = (features(samples).astype(np.float32) - ZERO_POINT) * np.float32(SCALE)
        for last in range(WINDOW, len(rows) + 1, 2):
            after = last - end // STEP
            is_word = word == WORD and 2 <= after <= LATE
            if word == WORD and not is_word and -6 <= after <= LATE + 4:
                continue  # neither: the word is almost complete, or just over
            windows.append(rows[last - WINDOW : last])
            labels.append(is_word)
    return np.array(windows), np.array(labels, np.float32)


def patches(windows: Array) -> Array:
    """Return the patches that the convolution reads, [N, 16, 200]."""
    starts = range(0, WINDOW - TAPS + 1, STRIDE)
    return np.stack([windows[:, start : start + TAPS].reshape(len(windows), -1) for start in starts], axis=1)


def forward(parameters: dict[str, Array], x: Array) -> tuple[Array, Array]:
    """Return the convolution's results [N, 16, 16] after ReLU, and the scores' logits [N]."""
    hidden = np.maximum(x @ parameters["conv"].T + parameters["conv_bias"], 0)
    return hidden, hidden.reshape(len(x), -1) @ parameters["dense"] + parameters["dense_bias"]


def train(windows: Array, labels: Array) -> dict[str, Array]:
    """Return the parameters after training with Adam on the logistic loss; both classes have equal total weight."""
    random, x = np.random.RandomState(SEED), patches(windows)
    parameters = {
        "conv": (random.standard_normal((CHANNELS, x.shape[2])) * (2 / x.shape[2]) ** 0.5 / 8).astype(np.float32),
        "conv_bias": np.zeros(CHANNELS, np.float32),
        "dense": (random.standard_normal(x.shape[1] * CHANNELS) * 0.05).astype(np.float32),
        "dense_bias": np.zeros(1, np.float32),
    }
    weights = np.where(labels > 0, 0.5 / labels.mean(), 0.5 / (1 - labels.mean())).astype(np.float32)
    adam = Adam(parameters, DECAY)
    for epoch in range(EPOCHS):
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
            hidden, logits = forward(parameters, x[batch])
            back = (expit(logits) - labels[batch]) * weights[batch] / len(batch)
            to_hidden = (back[:, None] * parameters["dense"]).reshape(hidden.shape) * (hidden > 0)
            slopes = {
                "conv": np.einsum("npc,npk->ck", to_hidden, x[batch]),
                "conv_bias": to_hidden.sum(axis=(0, 1)),
                "dense": back @ hidden.reshape(len(batch), -1),
                "dense_bias": back.sum(keepdims=True),
            }
            adam.step(parameters, slopes, RATE_OF_LEARNING * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS)))
    return parameters


def int8_model(parameters: dict[str, Array], windows: Array) -> bytes:
    """Return the network in int8, with ranges from `windows`."""
    hidden, logits = forward(parameters, patches(windows))
    b = ModelBuilder()
    x = b.input("features", (1, WINDOW, 1, 40), "int8", SCALE, ZERO_POINT)
    weights = parameters["conv"].reshape(CHANNELS, TAPS, 1, 40)
    scales = np.abs(parameters["conv"]).max(axis=1) / 127
    bias = np.rint(parameters["conv_bias"] / (SCALE * scales)).astype(np.int32)
    stored = np.rint(weights / scales[:, None, None, None]).astype(np.int8)
    out = (float(hidden.max()) / 255, -128)
    options = {"stride": (STRIDE, 1), "padding": "valid", "activation": "relu", "out": out}
    x = b.conv2d(x, stored, bias, weight_scale=scales, name="conv", **options)
    x = b.reshape(x, (1, -1), name="flatten")
    scale = float(np.abs(parameters["dense"]).max() / 127)
    stored = np.rint(parameters["dense"] / scale).astype(np.int8)[None]
    bias = np.rint(parameters["dense_bias"] / (out[0] * scale)).astype(np.int32)
    low, high = min(0.0, float(logits.min())), max(0.0, float(logits.max()))
    step = (high - low) / 255
    x = b.fully_connected(x, stored, bias, weight_scale=scale, out=(step, round(-128 - low / step)), name="dense")
    b.output(b.logistic(x, name="score"))
    return b.build()


def recording(random: np.random.RandomState) -> tuple[npt.NDArray[np.int16], list[tuple[float, float]]]:
    """Return words with pauses, and begin and end of the wake words in seconds."""
    parts, labels, position = [], [], 0
    for word in ("", WORD, "uea", WORD, "oia", "aie", WORD):
        samples, start, end = clip(word, random, 1.0)
        if word == WORD:
            labels.append(((position + start) / RATE, (position + end) / RATE))
        parts.append(samples)
        position += len(samples)
    return np.concatenate(parts), labels


def write_recording(samples: npt.NDArray[np.int16], places: list[tuple[float, float]]) -> None:
    """Write words.wav and words.txt."""
    with wave.open(str(FOLDER / "words.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    rows = [f"{begin:.3f}\t{end:.3f}\t{WORD}\n" for begin, end in places]
    (FOLDER / "words.txt").write_text("".join(rows))


def main() -> None:
    """Train, print the accuracy on held-out clips, and write the files."""
    windows, labels = examples(np.random.RandomState(SEED), CLIPS)
    parameters = train(windows, labels)
    held_out = examples(np.random.RandomState(SEED + 1), CLIPS // 4)
    for name, (x, y) in {"training": (windows, labels), "held out": held_out}.items():
        detected, words = forward(parameters, patches(x))[1] > 0, y > 0
        print(
            f"{name}: {detected[words].mean():.3f} of {words.sum()} windows with the word are detected, "
            f"{detected[~words].mean():.4f} of {(~words).sum()} without"
        )
    (FOLDER / "wake_word_int8.tflite").write_bytes(int8_model(parameters, windows))
    write_recording(*recording(np.random.RandomState(SEED + 2)))


if __name__ == "__main__":
    main()
