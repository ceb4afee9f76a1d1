"""Calibration and evaluation samples, from files or random."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from pathlib import Path

from stages.base import StageError, error_at
from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.ir.samples.encoding import decoded, stored_as
from stages.ir.samples.files import Port, inferences_in, read_inferences, read_labels
from stages.ir.samples.named import Place, blamed, files_named
from stages.ir.samples.wav import audio_of
from stages.quantize.options import CalibrationData, EvaluationData, QuantizeOptions, RandomSamples
from stages.support.lazy import np
from stages.support.options.encoding import Encoding
from stages.support.system.pathname import located

_AT: Place = ("stages", "quantize")
MOST_SAMPLES = 500  # default for files
_RANDOM_SAMPLES = 100
_LABELS = "labels"


@dataclass(frozen=True)
class Sample:
    """Inputs of one inference, float32, in the network's order, with an optional class.

    first: the sample begins a sequence, so the network's state is reset before it.
    """

    inputs: tuple[Array, ...]
    name: str
    label: int | None = None
    first: bool = True


def external_files(options: QuantizeOptions, root: Path) -> dict[str, Path]:
    """Return the files that the options name, by `data: NAME`, `evaluate: NAME` and `labels`."""
    paths: dict[str, Path] = {}
    for key in ("data", "evaluate"):
        source = getattr(options, key)
        source_files = files_named(source.files, root, (*_AT, key, "files")) if source is not None else {}
        paths |= {f"{key}: {name}": path for name, path in source_files.items()}
    if options.evaluate is not None and options.evaluate.labels is not None:
        paths[_LABELS] = located(options.evaluate.labels, root)
    return paths


def calibration(
    options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo, rate: int | None = None
) -> list[Sample]:
    """Return the calibration samples. Raises StageError for unsuitable files, or too few.

    rate: samples per second of the model's front end, None without one.
    """
    assert options.data is not None
    if options.data.random is not None:
        return _sampled(options.data.random, options.samples or _RANDOM_SAMPLES, info)
    samples = _read("data", options.data, files, info, rate)
    return _select(samples, options, info)


def evaluation(
    options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo, rate: int | None = None
) -> list[Sample] | None:
    """Return the evaluation samples; None if the recipe has no `evaluate`.

    `rate` is as for `calibration`.
    """
    if options.evaluate is None:
        return None
    samples = _read("evaluate", options.evaluate, files, info, rate)
    if _LABELS not in files:
        return samples
    labels = _labels(options.evaluate, files, len(samples), info)
    return [replace(sample, label=label) for sample, label in zip(samples, labels, strict=True)]


def check_data(
    options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo | None, rate: int | None = None
) -> None:
    """Raise StageError as `calibration` and `evaluation`, as far as possible before the run.

    info: the model's contents, if known. `rate` is as for `calibration`.
    """
    counts = {"data": 0, "evaluate": 0}
    for key in counts:
        source: CalibrationData | EvaluationData | None = getattr(options, key)
        if source is None:
            continue
        ports = [_port(info.tensors[index], source.encoding) for index in info.inputs] if info is not None else None
        audio = audio_of(source.audio, rate, (*_AT, key, "audio"))
        for name, path in _named(key, files).items():
            with error_at(*blamed(source.files, name, (*_AT, key, "files"))):
                counts[key] += inferences_in(name, path, ports, audio)
    if options.data is not None and options.data.files and info is not None:
        _check_enough(counts["data"], options)
    if _LABELS in files and info is not None and options.evaluate is not None:
        _labels(options.evaluate, files, counts["evaluate"], info)


def _labels(source: EvaluationData, files: Mapping[str, Path], count: int, info: ModelInfo) -> list[int]:
    with error_at(*_AT, "evaluate", "labels"):
        name = source.labels or _LABELS
        return read_labels(name, files[_LABELS], count, _classes(info), "quantize.evaluate.files")


def _named(key: str, files: Mapping[str, Path]) -> dict[str, Path]:
    return {name.removeprefix(f"{key}: "): path for name, path in files.items() if name.startswith(f"{key}: ")}


def _read(
    key: str, source: CalibrationData | EvaluationData, files: Mapping[str, Path], info: ModelInfo, rate: int | None
) -> list[Sample]:
    ports = [_port(info.tensors[index], source.encoding) for index in info.inputs]
    audio = audio_of(source.audio, rate, (*_AT, key, "audio"))
    samples = []
    for name, path in _named(key, files).items():
        with error_at(*blamed(source.files, name, (*_AT, key, "files"))):
            for inference in read_inferences(name, path, ports, audio):
                inputs = tuple(decoded(inference.data, ports, source.encoding))
                samples.append(Sample(inputs, inference.name, first=inference.first))
    return samples


def _port(tensor: TensorInfo, encoding: Encoding | None) -> Port:
    port = {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape), "bytes": 4 * prod(tensor.shape)}
    return stored_as(port, encoding) if encoding is not None else port


def _sampled(random: RandomSamples, count: int, info: ModelInfo) -> list[Sample]:
    """Return random samples from PCG64's raw output, which NumPy guarantees to keep.

    The same seed gives the same numbers.
    """
    stream, samples = np.random.PCG64(random.seed), []
    for number in range(count):
        inputs = []
        for index in info.inputs:
            shape = info.tensors[index].shape
            raw = np.asarray(stream.random_raw(prod(shape)), dtype=np.uint64) >> np.uint64(11)
            values = random.low + (random.high - random.low) * (raw.astype(np.float64) / 2.0**53)
            inputs.append(values.astype(np.float32).reshape(shape))
        samples.append(Sample(tuple(inputs), f"random sample {number} of seed {random.seed}", first=number == 0))
    return samples


def _select(samples: list[Sample], options: QuantizeOptions, info: ModelInfo) -> list[Sample]:
    """Return the requested number of samples, evenly spaced.

    For a network with state, each sequence contributes its share from its beginning.
    """
    _check_enough(len(samples), options)
    total = len(samples)
    count = options.samples or min(total, MOST_SAMPLES)
    if not any(tensor.variable for tensor in info.tensors):
        return [samples[number * total // count] for number in range(count)]
    sequence_starts = [*(at for at, sample in enumerate(samples) if sample.first), total]
    shares = [(begin, end * count // total - begin * count // total) for begin, end in pairwise(sequence_starts)]
    return [sample for begin, share in shares for sample in samples[begin : begin + share]]


def _check_enough(available: int, options: QuantizeOptions) -> None:
    if options.samples is not None and available < options.samples:
        count = f"{available} inference{'' if available == 1 else 's'}"
        message = f"the data files hold {count}, but samples is {options.samples}"
        raise StageError(message, hint="add files, or lower samples", at=(*_AT, "samples"))


def _classes(info: ModelInfo) -> int:
    return prod(info.tensors[info.outputs[0]].shape)
