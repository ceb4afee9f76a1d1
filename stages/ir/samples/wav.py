"""WAV files as inputs: mono, 16-bit PCM, cut into windows of the network's input.

samples   |----|----|----|----|----|--        step
window 0  [=======]
window 1       [=======]
window 2            [=======]
                                              the last samples do not fill a window: dropped
"""

import re
import shlex
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from stages.ir.models.sources import ModelSource
from stages.support.lazy import np
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.options.audio import SAMPLE_RATE, AudioOptions, samples_of

_BYTES = 2
_UNKNOWN_FORMAT = re.compile(r"^unknown format: (\d+)$")
_FORMATS = {2: "ADPCM", 3: "floating-point", 6: "A-law", 7: "mu-law", 17: "ADPCM", 49: "GSM", 85: "MP3"}
_EXTENSIBLE = 0xFFFE
_ENCODING = "encoding: {dtype: int16, scale: 3.0517578125e-05}"  # 1 / 32768

_CHAIN = "put the front end that it was trained with before it in a chain"


@dataclass(frozen=True)
class Audio:
    """AudioOptions of a network.

    rate      samples per second
    frontend  whether the network's front end determines the rate
    """

    options: AudioOptions
    rate: int
    frontend: bool = False

    def step(self, window: int) -> int:
        """Return the distance between two windows of `window` samples, in samples.

        Raises StageError.
        """
        if self.options.step is None:
            return window
        samples = samples_of(self.options.step, self.rate)
        if samples != int(samples) or samples < 1:
            raise StageError(
                f"a step of {self.options.step} is {samples:g} samples at {self.rate:,} samples per second",
                hint="choose a step of whole samples",
            )
        return int(samples)

    def check_contiguous(self, window: int) -> None:
        """Raise StageError for gaps or overlap of `window`-sample windows, if there is state."""
        if self.step(window) != window:
            raise StageError(
                f"step is {self.options.step}, but the network has state: a run continues after the {window:,} samples "
                f"({1000 * window / self.rate:g} ms) of the run before it",
                hint="remove step; to change the samples of a run, set `frames` or `step_ms` of the front end",
            )


def audio_of(options: AudioOptions | None, rate: int | None, at: Sequence[str | int]) -> Audio:
    """Return the options for a network.

    rate  samples per second of the network's front end, None without one
    at    place of the options in the recipe

    Raises StageError if they contradict the front end.
    """
    options = options or AudioOptions()
    if rate is not None and options.sample_rate not in (None, rate):
        raise StageError(
            f"sample_rate is {options.sample_rate:,}, but the network's front end reads {rate:,} samples per second",
            hint="remove sample_rate here, or change the front end's",
            at=(*at, "sample_rate"),
        )
    return Audio(options, options.sample_rate or rate or SAMPLE_RATE, rate is not None)


def model_rate(model: ModelSource) -> int | None:
    """Return the sample rate of the model entry's front end; None without one."""
    frontend = getattr(model, "frontend", None)
    return None if frontend is None else int(frontend.sample_rate)


def is_wav(path: Path) -> bool:
    """Return whether the name ends in .wav."""
    return path.suffix.lower() == ".wav"


def window_of(name: str, ports: Sequence[Mapping[str, Any]]) -> int:
    """Return the samples of an input.

    Raises StageError for a network whose input is not samples, naming the file.
    """
    if len(ports) != 1:
        raise StageError(
            f"{name}: the network has {len(ports)} inputs, but a WAV file provides one",
            hint="write all inputs of an inference one after the other into a .bin file",
        )
    port, shape = ports[0], list(ports[0]["shape"])
    described = f"{name}: the network's input {escape.name(port['name'])} is {shape} {port['dtype']}"
    if max(shape, default=1) != prod(shape) or prod(shape) < 2:
        raise StageError(f"{described}, not a row of audio samples", hint=_CHAIN)
    if port["dtype"] != "int16":
        hint = f"if it reads samples, state their scale: {_ENCODING}\nif it reads features, {_CHAIN}"
        raise StageError(f"{described}, but audio is int16", hint=hint)
    return prod(shape)


def windows_in(name: str, path: Path, audio: Audio, window: int | None) -> int:
    """Return the number of windows in a WAV file; without `window` (unknown), of samples.

    Reads only the header. Raises StageError for a file that is not mono, 16-bit PCM of the network's sample rate, that
    is cut short, or that does not fill one window.
    """
    count, _ = _header(name, path, audio)
    if window is None:
        return count
    step = audio.step(window)
    if count < window:
        raise StageError(
            f"{name}: has {count:,} samples ({1000 * count / audio.rate:g} ms), but the network reads {window:,}",
            hint="remove the file, or add silence at its end",
        )
    return 1 + (count - window) // step


def read_windows(name: str, path: Path, audio: Audio, window: int) -> list[memoryview]:
    """Return a WAV file's windows: views of int16, little-endian, into a map of the file.

    Raises StageError as `windows_in`.
    """
    windows, step = windows_in(name, path, audio, window), audio.step(window)
    count, start = _header(name, path, audio)
    data = memoryview(np.memmap(path, np.uint8, "r", start, (count * _BYTES,)))  # type: ignore[arg-type]
    return [data[at * step * _BYTES : (at * step + window) * _BYTES] for at in range(windows)]


def seconds_of(windows: int, window: int, audio: Audio) -> float:
    """Return the length of audio that a number of windows covers."""
    return ((windows - 1) * audio.step(window) + window) / audio.rate


def _header(name: str, path: Path, audio: Audio) -> tuple[int, int]:
    """Return the samples of a WAV file, `seconds` of it at most, and the position of the first.

    Raises StageError.
    """
    fix = f"convert it: ffmpeg -i {shlex.quote(name)} -ac 1 -ar {audio.rate} -c:a pcm_s16le converted.wav"
    try:
        with path.open("rb") as file, wave.open(file) as header:
            channels, bits, rate = header.getnchannels(), 8 * header.getsampwidth(), header.getframerate()
            count, start = header.getnframes(), file.tell()
            present = (path.stat().st_size - start) // (channels * bits // 8)
    except FileNotFoundError:
        raise StageError(f"there is no file {name}") from None
    except OSError as error:
        raise StageError(f"{name}: cannot be read: {error.strerror or error}") from None
    except EOFError:
        what = "is empty" if not path.stat().st_size else "ends inside its header"
        raise StageError(f"{name}: {what}", hint="record or copy the file again") from None
    except (wave.Error, ZeroDivisionError) as error:
        raise StageError(f"{name}: {_unreadable(error)}", hint=fix) from None
    if channels != 1 or bits != 16:
        heard = "mono" if channels == 1 else "stereo" if channels == 2 else f"{channels} channels"
        raise StageError(f"{name}: is {heard}, {bits} bit; inputs are mono, 16 bit", hint=fix)
    if rate != audio.rate:
        raise StageError(
            f"{name}: has {rate:,} samples per second, but the network reads {audio.rate:,}",
            hint=fix if audio.frontend else f"{fix}\nif it was trained with this rate: audio: {{sample_rate: {rate}}}",
        )
    if present < count:
        raise StageError(
            f"{name}: is cut short: its header states {count:,} samples, the file has {present:,}",
            hint=f"copy it again, or convert the part that exists: {fix.removeprefix('convert it: ')}",
        )
    if not count:
        raise StageError(f"{name}: has no samples", hint="record it again, or remove it")
    seconds = audio.options.seconds
    return (count if seconds is None else min(count, round(seconds * rate))), start


def _unreadable(error: Exception) -> str:
    """Describe an error of `wave`."""
    match = _UNKNOWN_FORMAT.match(str(error))
    if match is None:
        return "is not a WAV file" if "RIFF" in str(error) else f"has an invalid WAV header ({error})"
    if int(match[1]) == _EXTENSIBLE:
        return "has the extended WAV header; inputs are plain mono, 16-bit PCM"
    return f"holds {_FORMATS.get(int(match[1]), f'format {match[1]}')} samples; inputs are mono, 16-bit PCM"
