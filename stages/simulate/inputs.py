"""The inputs of a run: random, extreme, and from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError

if TYPE_CHECKING:
    import numpy as np

    from stages.simulate import InputsConfig

LABELS = "labels"
_GLOB = set("*?[")


@dataclass(frozen=True)
class Inference:
    """All inputs of one inference as bytes, one after the other; what they are, for people; the class if known."""

    data: bytes
    name: str
    label: int | None = None


def external_files(config: InputsConfig, root: Path) -> dict[str, Path]:
    """The files that `config` names, by the name to show, in order. Raises StageError for a glob without a match."""
    found: dict[str, Path] = {}
    for pattern in config.files:
        if _GLOB.isdisjoint(pattern):
            found[pattern] = root / pattern
            continue
        base, relative = (
            (Path(Path(pattern).anchor), pattern.lstrip("/")) if Path(pattern).is_absolute() else (root, pattern)
        )
        matches = sorted(path for path in base.glob(relative) if path.is_file())
        if not matches:
            raise StageError(f"simulate.inputs.files: no file matches {pattern}", hint=f"it is looked up in {root}")
        found |= {path.relative_to(base).as_posix() if base == root else str(path): path for path in matches}
    if config.labels is not None:
        found[LABELS] = root / config.labels
    return found


def make_inputs(
    config: InputsConfig, ports: Sequence[Mapping[str, Any]], files: Mapping[str, Path], classes: int | None = None
) -> list[Inference]:
    """All inferences of a run, in the order that InputsConfig describes.

    `ports` are the `inputs` of model.json; `files` as external_files gives them; `classes` are the elements of the
    first output, the bound of labels. Raises StageError when there is none
    at all, or a file does not fit the network's inputs.
    """
    import numpy as np

    inferences: list[Inference] = []
    for index in range(config.random):
        generator = np.random.default_rng((config.seed, index))
        data = b"".join(_random(port, generator).tobytes() for port in ports)
        inferences.append(Inference(data, f"random input {index} of seed {config.seed}"))
    if config.extremes:
        for position, kind in enumerate(("minimum", "maximum")):
            data = b"".join(np.full(port["shape"], _range(port)[position], port["dtype"]).tobytes() for port in ports)
            inferences.append(Inference(data, f"all {kind}"))
    from_files = [one for name, path in files.items() if name != LABELS for one in _read(name, path, ports)]
    if LABELS in files:
        from_files = _labelled(from_files, files[LABELS], classes)
    inferences += from_files
    if not inferences:
        raise StageError("simulate.inputs: there is no input", hint="set random, extremes or files")
    return inferences


def _range(port: Mapping[str, Any]) -> tuple[Any, Any]:
    """Lowest and highest value of an input."""
    import numpy as np

    dtype = np.dtype(port["dtype"])
    if dtype.kind == "f":
        return -1.0, 1.0
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def _random(port: Mapping[str, Any], generator: np.random.Generator) -> np.ndarray:
    import numpy as np

    low, high = _range(port)
    if np.dtype(port["dtype"]).kind == "f":
        return generator.uniform(low, high, port["shape"]).astype(port["dtype"])
    return generator.integers(int(low), int(high), port["shape"], endpoint=True).astype(port["dtype"])


def _read(name: str, path: Path, ports: Sequence[Mapping[str, Any]]) -> list[Inference]:
    """The inferences in one file: one in a .bin, one for each index of the first axis in a .npy."""
    if path.suffix not in (".bin", ".npy"):
        raise StageError(
            f"simulate.inputs.files: {name} ends in {path.suffix or 'nothing'}; an input is a .bin or a .npy file",
            hint=".bin holds the bytes of one inference, .npy an array with a leading axis of inferences",
        )
    if not path.is_file():
        raise StageError(f"simulate.inputs.files: there is no file {name}")
    size = sum(port["bytes"] for port in ports)
    if path.suffix == ".bin":
        data = path.read_bytes()
        if len(data) != size:
            wanted = ", ".join(f"{port['name']} {list(port['shape'])} {port['dtype']}" for port in ports)
            raise StageError(
                f"{name}: has {len(data):,} bytes, one inference takes {size:,} ({wanted})",
                hint="a .bin holds exactly one inference; several go into a .npy with a leading axis",
            )
        return [Inference(data, name)]
    data = _read_npy(name, path, ports)
    if len(data) == size:
        return [Inference(data, name)]
    return [Inference(data[at : at + size], f"{name}[{at // size}]") for at in range(0, len(data), size)]


def _read_npy(name: str, path: Path, ports: Sequence[Mapping[str, Any]]) -> bytes:
    import numpy as np

    array = _load_npy(name, path)
    if len(ports) != 1:
        raise StageError(
            f"{name}: the network has {len(ports)} inputs, a .npy holds one",
            hint="write all inputs of an inference one after the other into a .bin file",
        )
    port = ports[0]
    if array.dtype != np.dtype(port["dtype"]):
        raise StageError(f"{name}: holds {array.dtype}, the network's input {port['name']} is {port['dtype']}")
    shape = tuple(port["shape"])
    if array.shape[1:] not in (shape, shape[1:]):
        raise StageError(
            f"{name}: has shape {list(array.shape)}, the network's input {port['name']} is {list(shape)}",
            hint="the first axis of a .npy counts inferences",
        )
    if not len(array):
        raise StageError(f"{name}: has shape {list(array.shape)}: it holds no inference")
    return array.tobytes()


def _load_npy(name: str, path: Path) -> np.ndarray:
    """The array in a .npy file; files that hold Python objects are refused."""
    import numpy as np

    try:
        with path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise StageError(f"{name}: is not a .npy file", hint="write it with numpy.save")
        array: np.ndarray = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise StageError(f"there is no file {name}") from None
    except (ValueError, EOFError, OSError):
        raise StageError(
            f"{name}: cannot be read; it is cut short, or holds Python objects instead of numbers",
            hint="write an array of numbers with numpy.save",
        ) from None
    return array


def _labelled(inferences: list[Inference], path: Path, classes: int | None) -> list[Inference]:
    """The inferences from files with their classes, which lie below `classes` if that is known."""
    labels = _load_npy(f"simulate.inputs.labels: {path.name}", path)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != len(inferences):
        raise StageError(
            f"simulate.inputs.labels: {path.name}: {list(labels.shape)} {labels.dtype} is not one integer class for "
            f"each of the {len(inferences)} inferences from simulate.inputs.files"
        )
    for number, label in enumerate(labels):
        if label < 0 or (classes is not None and label >= classes):
            most = f"0 to {classes - 1}" if classes is not None else "0 and above"
            raise StageError(
                f"simulate.inputs.labels: {path.name}: label {label} of inference {number} is no class: "
                f"the network's first output has classes {most}"
            )
    return [replace(inference, label=int(label)) for inference, label in zip(inferences, labels, strict=True)]
