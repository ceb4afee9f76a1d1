"""Inputs of a run: random values, extremes, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

from stages.base import StageError, error_at
from stages.ir.samples.encoding import in_network_types, stored_as
from stages.ir.samples.files import RANGE, Inference, Port, inferences_in, read_inferences, read_labels
from stages.ir.samples.label_times import Label, is_over_time, read_label_times
from stages.ir.samples.named import Place, blamed, files_named
from stages.ir.samples.wav import Audio, audio_of, is_wav, seconds_of, windows_in
from stages.simulate.config import InputsConfig
from stages.support.lazy import np
from stages.support.messages import escape
from stages.support.options.encoding import Encoding
from stages.support.system.pathname import located

LABELS = "labels"
MANY_RUNS = 10_000  # inferences of WAV files, from which the run warns
STEPS = 8  # inferences of a sequence, unless the recipe sets them
_FILES = ("stages", "simulate", "inputs", "files")
_LABELS = ("stages", "simulate", "inputs", "labels")
_AUDIO = ("stages", "simulate", "inputs", "audio")


def external_files(config: InputsConfig, root: Path) -> dict[str, Path]:
    """Return the files that `config` names, by display name.

    Raises StageError for a glob without a match.
    """
    files = files_named(config.files, root, _FILES)
    if not config.labels:
        return files
    if is_over_time(config.labels):
        tracks = files_named((config.labels,), root, _LABELS)
        files |= {f"{LABELS}: {name}": path for name, path in tracks.items()}
    else:
        files[LABELS] = located(config.labels, root)
    return files


def is_labels(name: str) -> bool:
    """Return whether a name of `external_files` stands for a file with labels over time."""
    return name.startswith(f"{LABELS}: ")


def _blamed(config: InputsConfig, name: str) -> Place:
    """Return the recipe's entry that names a file of `external_files`."""
    return _LABELS if name == LABELS or is_labels(name) else blamed(config.files, name, _FILES)


def make_inputs(
    config: InputsConfig,
    ports: Sequence[Port],
    files: Mapping[str, Path],
    classes: int | None = None,
    *,
    stateful: bool = False,
    rate: int | None = None,
    fill: int = 0,
) -> list[Inference]:
    """Return all inferences of a run, in the order that InputsConfig describes.

    ports     `inputs` of model.json
    files     result of external_files
    classes   elements of the first output: the upper bound of labels
    stateful  random inputs and extremes are sequences
    rate      samples per second of the network's front end, None without one
    fill      inferences until the window of an incremental network is full

    Raises StageError if there are no inputs, or a file does not fit the network's inputs.
    """
    inferences: list[Inference] = []
    steps = range((config.steps or fill + STEPS) if stateful else 1)
    for index in range(config.random):
        generator = np.random.default_rng((config.seed, index))
        for step in steps:
            data = b"".join(_random(port, generator).tobytes() for port in ports)
            name = f"random input {index} of seed {config.seed}"
            inferences.append(
                Inference(data, name + (f", step {step}" if stateful else ""), first=step == 0, random=True)
            )
    if config.extremes:
        for position, kind in enumerate(("minimum", "maximum")):
            data = b"".join(np.full(port["shape"], _range(port)[position], port["dtype"]).tobytes() for port in ports)
            for step in steps:
                name = f"all {kind}" + (f", step {step}" if stateful else "")
                inferences.append(Inference(data, name, first=step == 0, random=True))
    from_files: list[Inference] = []
    audio = audio_of(config.audio, rate, _AUDIO)
    _check_step(audio, files, ports, stateful)
    for name, path in files.items():
        with error_at(*_blamed(config, name)):
            if name == LABELS:
                labels = read_labels(config.labels or name, path, len(from_files), classes, "simulate.inputs.files")
                from_files = [replace(sample, label=label) for sample, label in zip(from_files, labels, strict=True)]
            elif not is_labels(name):
                from_files += _read(name, path, ports, config.encoding, audio)
    inferences += from_files
    if not inferences:
        raise StageError("there is no input", hint="set random, extremes or files", at=_FILES[:-1])
    return inferences


def _check_step(audio: Audio, files: Mapping[str, Path], ports: Sequence[Port], stateful: bool) -> None:
    """Raise StageError if the step of WAV files does not fit a network with state."""
    if stateful and len(ports) == 1 and any(map(is_wav, files.values())):
        with error_at(*_AUDIO, "step"):
            audio.check_contiguous(prod(ports[0]["shape"]))


def _read(name: str, path: Path, ports: Sequence[Port], encoding: Encoding | None, audio: Audio) -> list[Inference]:
    if encoding is None:
        return read_inferences(name, path, ports, audio)
    samples = read_inferences(name, path, [stored_as(port, encoding) for port in ports], audio)
    return [in_network_types(sample, ports, encoding) for sample in samples]


def check_files(
    config: InputsConfig,
    files: Mapping[str, Path],
    ports: Sequence[Port] | None,
    classes: int | None,
    rate: int | None = None,
    *,
    stateful: bool = False,
) -> None:
    """Raise the errors of `make_inputs` and `recordings` early.

    Of the values in files, only indices are read.

    `ports` and `classes` are None if they are not known yet. `rate` and `stateful` are as for `make_inputs`.
    """
    audio = audio_of(config.audio, rate, _AUDIO)
    _check_step(audio, files, ports or (), stateful)
    if ports is not None and config.encoding is not None:
        ports = [stored_as(port, config.encoding) for port in ports]
    count = 0
    for name, path in files.items():
        with error_at(*_blamed(config, name)):
            if name == LABELS:
                read_labels(config.labels or name, path, count, classes, "simulate.inputs.files")
            elif not is_labels(name):
                count += inferences_in(name, path, ports, audio)
                if ports is not None and config.encoding is None and any(RANGE in port for port in ports):
                    read_inferences(name, path, ports, audio)
    label_times(files, audio)
    if config.labels == () and not any(map(is_wav, files.values())):
        raise StageError("`labels: []` is for WAV files, but `files` has none", hint="remove `labels`", at=_LABELS)


def label_times(files: Mapping[str, Path], audio: Audio) -> tuple[dict[str, list[Label]], list[str]]:
    """Return the labels over time of WAV files in `files` (external_files), and warnings."""
    with error_at(*_LABELS):
        tracks = {name.removeprefix(f"{LABELS}: "): path for name, path in files.items() if is_labels(name)}
        lengths = {
            name: windows_in(escape.name(name, 200), path, audio, None) / audio.rate
            for name, path in files.items()
            if is_wav(path) and name != LABELS
        }
        if tracks and not lengths:
            raise StageError("labels over time need WAV files in `files`", hint="for other files use a .npy of classes")
        return read_label_times(tracks, lengths, limited=audio.options.seconds is not None)


def recordings(
    config: InputsConfig,
    inferences: Sequence[Inference],
    ports: Sequence[Port],
    files: Mapping[str, Path],
    rate: int | None = None,
) -> dict[str, Any] | None:
    """Return `audio` of inputs.json: WAV files with their labels; None without WAV files.

    inferences  result of `make_inputs`, the other arguments are as for it
    """
    if not any(inference.recording for inference in inferences):
        return None
    audio = audio_of(config.audio, rate, _AUDIO)
    labels, warnings = label_times(files, audio)
    window, at, described = prod(ports[0]["shape"]), 0, []
    for name, group in groupby(inferences, lambda inference: inference.recording):
        steps = len(list(group))
        if name:
            described.append({"name": name, "first": at, "steps": steps, "labels": [vars(one) for one in labels[name]]})
        at += steps
    runs = sum(file["steps"] for file in described)
    if runs > MANY_RUNS:
        seconds = sum(seconds_of(file["steps"], window, audio) for file in described)
        limit = "set=stages.simulate.inputs.audio.seconds=60"
        warnings.append(f"{seconds:,.0f} s of audio are {runs:,} inferences; `{limit}` uses the beginning of each file")
    return {
        "sample_rate": audio.rate,
        "step": audio.step(window),
        "window": window,
        "labelled": config.labels == () or any(map(is_labels, files)),
        "files": described,
        "warnings": warnings,
    }


def _range(port: Port) -> tuple[Any, Any]:
    """Return the lowest and the highest value of an input."""
    dtype = np.dtype(port["dtype"])
    if dtype.kind == "b":
        return False, True
    if dtype.kind == "f":
        low, high = port.get(RANGE, (-1.0, 1.0))
        return low, high
    limits: Any = np.iinfo(dtype)
    low, high = port.get(RANGE, (limits.min, limits.max))
    return max(low, limits.min), min(high, limits.max)


def _random(port: Port, generator: np.random.Generator) -> np.ndarray:
    low, high = _range(port)
    if np.dtype(port["dtype"]).kind == "f":
        return np.asarray(generator.uniform(low, high, port["shape"])).astype(port["dtype"])
    wide = np.uint64 if port["dtype"] == "uint64" else np.int64
    return np.asarray(generator.integers(int(low), int(high), port["shape"], wide, endpoint=True)).astype(port["dtype"])
