"""What the networks are run on: calibration data and evaluation data, from files or drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError, blaming
from stages.ir.samples.encoding import decoded, stored_as
from stages.ir.samples.files import Port, inferences_in, read_inferences, read_labels
from stages.ir.samples.named import Place, blamed, files_named
from stages.support.system.pathname import located

if TYPE_CHECKING:
    import numpy as np

    from stages.ir.models.tflite_reader import ModelInfo, TensorInfo
    from stages.quantize.options import CalibrationData, EvaluationData, QuantizeOptions, RandomSamples
    from stages.support.options.encoding import Encoding

_AT: Place = ("stages", "quantize")
MOST_SAMPLES = 500  # where a recipe does not say how many
_DRAWN = 100
_LABELS = "labels"


@dataclass(frozen=True)
class Sample:
    """The inputs of one inference, float32, in the network's order; its class if that is known.

    `first`: it begins a sequence, before which a network's state is reset.
    """

    inputs: tuple[np.ndarray, ...]
    name: str
    label: int | None = None
    first: bool = True


def external_files(options: QuantizeOptions, root: Path) -> dict[str, Path]:
    """The files that the options name, by `data: NAME`, `evaluate: NAME` and `labels`."""
    found: dict[str, Path] = {}
    for key in ("data", "evaluate"):
        source = getattr(options, key)
        named = files_named(source.files, root, (*_AT, key, "files")) if source is not None else {}
        found |= {f"{key}: {name}": path for name, path in named.items()}
    if options.evaluate is not None and options.evaluate.labels is not None:
        found[_LABELS] = located(options.evaluate.labels, root)
    return found


def calibration(options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo) -> list[Sample]:
    """The samples that ranges come from. Raises StageError for files that do not fit, and too few."""
    assert options.data is not None
    if options.data.random is not None:
        return _drawn(options.data.random, options.samples or _DRAWN, info)
    found = _read("data", options.data, files, info)
    return _chosen(found, options, info)


def evaluation(options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo) -> list[Sample] | None:
    """The samples that networks are compared on; None where the recipe has none of their own."""
    if options.evaluate is None:
        return None
    found = _read("evaluate", options.evaluate, files, info)
    if _LABELS not in files:
        return found
    labels = _labels(options.evaluate, files, len(found), info)
    return [replace(one, label=label) for one, label in zip(found, labels, strict=True)]


def check_data(options: QuantizeOptions, files: Mapping[str, Path], info: ModelInfo | None) -> None:
    """Raises StageError as `calibration` and `evaluation` will, as far as that shows early; `info` if it is known."""
    counts = {"data": 0, "evaluate": 0}
    for key in counts:
        source: CalibrationData | EvaluationData | None = getattr(options, key)
        if source is None:
            continue
        ports = [_port(info.tensors[index], source.encoding) for index in info.inputs] if info is not None else None
        for name, path in _named(key, files).items():
            with blaming(*blamed(source.files, name, (*_AT, key, "files"))):
                counts[key] += inferences_in(name, path, ports)
    if options.data is not None and options.data.files and info is not None:
        _check_enough(counts["data"], options)
    if _LABELS in files and info is not None and options.evaluate is not None:
        _labels(options.evaluate, files, counts["evaluate"], info)


def _labels(source: EvaluationData, files: Mapping[str, Path], count: int, info: ModelInfo) -> list[int]:
    with blaming(*_AT, "evaluate", "labels"):
        name = source.labels or _LABELS
        return read_labels(name, files[_LABELS], count, _classes(info), "quantize.evaluate.files")


def _named(key: str, files: Mapping[str, Path]) -> dict[str, Path]:
    return {name.removeprefix(f"{key}: "): path for name, path in files.items() if name.startswith(f"{key}: ")}


def _read(
    key: str, source: CalibrationData | EvaluationData, files: Mapping[str, Path], info: ModelInfo
) -> list[Sample]:
    ports = [_port(info.tensors[index], source.encoding) for index in info.inputs]
    found = []
    for name, path in _named(key, files).items():
        with blaming(*blamed(source.files, name, (*_AT, key, "files"))):
            for one in read_inferences(name, path, ports):
                found.append(Sample(tuple(decoded(one.data, ports, source.encoding)), one.name, first=one.first))
    return found


def _port(tensor: TensorInfo, encoding: Encoding | None) -> Port:
    port = {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape), "bytes": 4 * prod(tensor.shape)}
    return stored_as(port, encoding) if encoding is not None else port


def _drawn(random: RandomSamples, count: int, info: ModelInfo) -> list[Sample]:
    """One sequence of PCG64's raw output, which NumPy promises to keep: the same seed gives the same numbers."""
    import numpy as np

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


def _chosen(found: list[Sample], options: QuantizeOptions, info: ModelInfo) -> list[Sample]:
    """As many as wanted, evenly over all; of a network with state each sequence's share from its beginning."""
    _check_enough(len(found), options)
    total = len(found)
    count = options.samples or min(total, MOST_SAMPLES)
    if not any(tensor.variable for tensor in info.tensors):
        return [found[number * total // count] for number in range(count)]
    begins = [*(at for at, one in enumerate(found) if one.first), total]
    shares = [(begin, end * count // total - begin * count // total) for begin, end in pairwise(begins)]
    return [one for begin, share in shares for one in found[begin : begin + share]]


def _check_enough(there: int, options: QuantizeOptions) -> None:
    if options.samples is not None and there < options.samples:
        held = f"{there} inference{'' if there == 1 else 's'}"
        message = f"the files of data hold {held}, {options.samples} samples are wanted"
        raise StageError(message, hint="more files, or fewer samples", at=(*_AT, "samples"))


def _classes(info: ModelInfo) -> int:
    return prod(info.tensors[info.outputs[0]].shape)
