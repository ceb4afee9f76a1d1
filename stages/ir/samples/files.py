"""Inputs and labels in files: checks without reading the elements, and reading."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Literal

from stages.ir.arithmetic.fixed_point import round_half_away
from stages.ir.samples.wav import Audio, is_wav, read_windows, window_of, windows_in
from stages.support.lazy import np
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.options.audio import SAMPLE_RATE, AudioOptions

# An entry of `inputs` in model.json: name, dtype, shape, bytes, and scale and zero_point if quantized.
# `encoded`: the file stores dtype, not the network's type. `range`: least and greatest index, for inputs of indices.
Port = Mapping[str, Any]
RANGE = "range"

_MOST_AXES = 32  # NumPy's own limit is 32 or 64, by version
_NUMPY_SAVE = "write an array of numbers with numpy.save"
_AUDIO = Audio(AudioOptions(), SAMPLE_RATE)


@dataclass(frozen=True)
class Inference:
    """The inputs of one inference.

    data       bytes of all inputs, one after the other
    name       name in messages
    label      class, None if unknown
    first      it begins a sequence: the network's state is reset before it
    random     its values are random, not from a file
    reals      numbers that were quantized from real numbers
    outside    clipped numbers among `reals`
    recording  name of its WAV file, or ''
    """

    data: bytes | memoryview
    name: str
    label: int | None = None
    first: bool = True
    random: bool = False
    reals: int = 0
    outside: int = 0
    recording: str = ""

    @property
    def fed(self) -> bytes:
        """Input of a network with state: uint32 1 for the first of a sequence, else 0, then `data`."""
        return int(self.first).to_bytes(4, "little") + self.data


def inferences_in(name: str, path: Path, ports: Sequence[Port] | None, audio: Audio = _AUDIO) -> int:
    """Return the number of inferences in a file.

    One in a .bin, the length of the first axis in a .npy, and the windows in a .wav. Raises StageError if kind or size
    do not fit the network's inputs; without `ports`, if the kind is unknown.
    """
    name = escape.name(name, 200)
    if path.suffix not in (".bin", ".npy") and not is_wav(path):
        raise StageError(
            f"{name} ends in {path.suffix or 'nothing'}; an input is a .bin, .npy or .wav file",
            hint=".bin holds the bytes of one inference, .npy an array with a leading axis of inferences, .wav audio",
        )
    if not path.is_file():
        raise StageError(f"there is no file {name}")
    if is_wav(path):
        return windows_in(name, path, audio, None if ports is None else window_of(name, ports))
    if path.suffix == ".npy":
        return _in_array(name, load_npy(name, path, mapped=True), ports)
    file_bytes = path.stat().st_size
    if ports is not None and file_bytes != _bytes(ports):
        described = ", ".join(f"{escape.name(port['name'])} {list(port['shape'])} {port['dtype']}" for port in ports)
        floats = file_bytes == sum(4 * prod(port["shape"]) for port in ports)
        raise StageError(
            f"{name}: has {file_bytes:,} bytes, one inference takes {_bytes(ports):,} ({described})",
            hint="if it holds float32, declare it: encoding: {dtype: float32}"
            if floats
            else "a .bin holds exactly one inference; several go into a .npy with a leading axis",
        )
    return 1


def read_inferences(name: str, path: Path, ports: Sequence[Port], audio: Audio = _AUDIO) -> list[Inference]:
    """Return the inferences in a file; real numbers for a quantized input become integers.

    Raises StageError as `inferences_in`, for NaN and infinity, and for too little memory.
    """
    if is_wav(path) and path.is_file():
        return _windows(name, path, ports, audio)
    count = inferences_in(name, path, ports)
    try:
        return _inferences(name, path, ports, count)
    except MemoryError:
        raise _short(name, path) from None


def _windows(name: str, path: Path, ports: Sequence[Port], audio: Audio) -> list[Inference]:
    shown = escape.name(name, 200)
    inferences = [
        Inference(window, f"{name}[{at}]", first=at == 0, recording=name)
        for at, window in enumerate(read_windows(shown, path, audio, window_of(shown, ports)))
    ]
    if RANGE in ports[0]:
        for inference in inferences:
            _check_values(inference, ports)
    return inferences


def _inferences(name: str, path: Path, ports: Sequence[Port], count: int) -> list[Inference]:
    size = _bytes(ports)
    reals, wrong = 0, [0] * count
    if path.suffix == ".bin":
        data = path.read_bytes()
    else:
        array = load_npy(name, path)
        if _is_real(array, ports[0]):
            reals = array.size // count
            wrong = [clipped(part, ports[0]) for part in array.reshape(count, -1)]
            array = quantized(name, array, ports[0])
        data = array.tobytes()
    names = [name if count == 1 else f"{name}[{at}]" for at in range(count)]
    inferences = [
        Inference(data[at * size : (at + 1) * size], names[at], first=at == 0, reals=reals, outside=wrong[at])
        for at in range(count)
    ]
    for inference in inferences:
        _check_values(inference, ports)
    return inferences


def _check_values(inference: Inference, ports: Sequence[Port]) -> None:
    at = 0
    for port in ports:
        values = np.frombuffer(inference.data[at : at + int(port["bytes"])], port["dtype"]).reshape(port["shape"])
        at += int(port["bytes"])
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            first = tuple(int(axis) for axis in wrong[0])
            where = f"element {list(first)} of the input {escape.name(port['name'])}"
            raise StageError(
                f"{escape.name(inference.name, 200)}: {where} is {float(values[first])}; "
                f"inputs must be finite numbers ({len(wrong):,} of {values.size:,} are not)"
            )
        low, high = port.get(RANGE, (-np.inf, np.inf))
        wrong = np.argwhere((values < low) | (values > high))
        if len(wrong):
            first = tuple(int(axis) for axis in wrong[0])
            where = f"element {list(first)} of the input {escape.name(port['name'])}"
            raise StageError(
                f"{escape.name(inference.name, 200)}: {where} is {values[first]}; "
                f"the network uses it as an index: {low} to {high} ({len(wrong):,} of {values.size:,} are outside)"
            )


def _is_real(array: np.ndarray, port: Port) -> bool:
    """Whether the array has real numbers for a quantized input."""
    return bool(array.dtype == "float32" and port["dtype"] != "float32" and port.get("scale"))


def quantized(name: str, array: np.ndarray, port: Port) -> np.ndarray:
    """Quantize real numbers as TFLite's QUANTIZE: float32, halves away from zero, clamped.

    Raises StageError for NaN and infinity.
    """
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        first = tuple(int(axis) for axis in wrong[0])
        where = f"element {list(first)} is {float(array[first])}"
        message = f"{escape.name(name, 200)}: {where}; inputs must be finite numbers"
        raise StageError(f"{message} ({len(wrong):,} of {array.size:,} are not)")
    limits: Any = np.iinfo(port["dtype"])
    steps = round_half_away(array / np.float32(port["scale"])).astype(np.float64) + int(port["zero_point"])
    return np.asarray(np.clip(steps, limits.min, limits.max)).astype(port["dtype"])


def clipped(array: np.ndarray, port: Port) -> int:
    """Return how many numbers are more than half a step outside of a quantized input's range."""
    limits: Any = np.iinfo(port["dtype"])
    steps = array / np.float32(port["scale"]) + int(port["zero_point"])
    return int(np.count_nonzero((steps < limits.min - 0.5) | (steps > limits.max + 0.5)))


def _bytes(ports: Sequence[Port]) -> int:
    return sum(int(port["bytes"]) for port in ports)


def _in_array(name: str, array: np.ndarray, ports: Sequence[Port] | None) -> int:
    if ports is None:
        return len(array) if array.ndim else 0
    if len(ports) != 1:
        raise StageError(
            f"{name}: the network has {len(ports)} inputs, a .npy holds one",
            hint="write all inputs of an inference one after the other into a .bin file",
        )
    port, called = ports[0], escape.name(ports[0]["name"])
    if array.dtype != np.dtype(port["dtype"]) and not _is_real(array, port):
        wanted = "its encoding says" if port.get("encoded") else f"the network's input {called} is"
        raise StageError(f"{name}: holds {array.dtype}, {wanted} {port['dtype']}", hint=_retyped(array, port))
    shape = tuple(port["shape"])
    elements = prod(shape)
    if array.shape[1:] not in (shape, shape[1:]) or array.size % elements:
        raise StageError(
            f"{name}: has shape {list(array.shape)}, the network's input {called} is {list(shape)}",
            hint="the first axis of a .npy counts inferences",
        )
    if not len(array):
        raise StageError(f"{name}: has shape {list(array.shape)}: it holds no inference")
    return int(array.size // elements)


def _retyped(array: np.ndarray, port: Port) -> str:
    """Return how to convert an array to the type of the network's input; '' if unknown."""
    if array.dtype.kind == "f" and (port["dtype"] == "float32" or port.get("scale")):
        return "write it with array.astype(np.float32)"
    if str(array.dtype) in ("int8", "uint8", "int16") and port["dtype"] == "float32":
        return f"declare how numbers are stored: encoding: {{dtype: {array.dtype}, scale: ..., zero_point: ...}}"
    if array.dtype.kind in "iub" and port["dtype"] != "float32":
        return f"write the network's own integers with array.astype(np.{port['dtype']}), or real numbers as float32"
    if array.dtype.kind in "iu" and str(port["dtype"]) in ("int32", "int64"):
        return f"write it with array.astype(np.{port['dtype']})"
    return ""


def load_npy(name: str, path: Path, *, mapped: bool = False) -> np.ndarray:
    """Return the array in a .npy file; `mapped` does not read its elements.

    The header is checked against the size of the file before memory is allocated. Raises StageError, naming the file as
    `name`, for an invalid header, a truncated file, elements that are not numbers, and for too little memory.
    """
    name = escape.name(name, 200)
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = _npy_header(name, file)
            start, count, file_bytes = file.tell(), prod(shape), path.stat().st_size
            if file_bytes - start < count * dtype.itemsize:
                raise StageError(
                    f"{name}: is cut short: {dtype}{list(shape)} takes {count * dtype.itemsize:,} bytes after the "
                    f"header, the file has {file_bytes - start:,}",
                    hint=_NUMPY_SAVE,
                )
            order: Literal["F", "C"] = "F" if fortran else "C"
            if mapped and count:
                return np.memmap(file, dtype, "r", start, shape, order)
            return np.fromfile(file, dtype, count).reshape(shape, order=order)
    except FileNotFoundError:
        raise StageError(f"there is no file {name}") from None
    except OSError as error:
        raise StageError(f"{name}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise _short(name, path) from None


def _npy_header(name: str, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and element type. Raises StageError for an invalid header."""
    from numpy.lib import format as npy

    if file.read(6) != b"\x93NUMPY":
        raise StageError(f"{name}: is not a .npy file", hint=_NUMPY_SAVE)
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of headers that Python 2 wrote
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except Exception as error:  # NumPy evaluates the header, which raises anything
        raise StageError(f"{name}: has an invalid .npy header", hint=_NUMPY_SAVE) from error
    if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > _MOST_AXES:
        shown = escape.name(str(shape))
        raise StageError(f"{name}: has an invalid .npy header: the shape is {shown}", hint=_NUMPY_SAVE)
    if dtype.kind not in "biufc":
        what = "Python objects" if dtype.hasobject else escape.name(str(dtype))
        raise StageError(f"{name}: holds {what} instead of numbers", hint=_NUMPY_SAVE)
    return shape, fortran, dtype


def _short(name: str, path: Path) -> StageError:
    return StageError(
        f"{escape.name(name, 200)}: not enough memory for its {path.stat().st_size:,} bytes",
        hint="use a part of it, or a machine with more memory",
    )


def read_labels(name: str, path: Path, count: int, classes: int | None, of: str) -> list[int]:
    """Return the classes of `count` inferences; each is below `classes` if that is known.

    name  labels file in messages
    of    files of the inferences in messages
    """
    labels, name = load_npy(name, path, mapped=True), escape.name(name, 200)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != count:
        raise StageError(
            f"{name}: {list(labels.shape)} {labels.dtype} is not one integer class for "
            f"each of the {count} inferences from {of}",
            hint="replace or remove `labels`",
        )
    for number, label in enumerate(labels):
        if label < 0 or (classes is not None and label >= classes):
            most = f"0 to {classes - 1}" if classes is not None else "0 and above"
            raise StageError(
                f"{name}: label {label} of inference {number} is not a class: "
                f"the network's first output has classes {most}"
            )
    return [int(label) for label in labels]
