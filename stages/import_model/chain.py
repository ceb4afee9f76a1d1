"""Join the parts of a chain into one TFLite file.

Tensors get the name of their part as prefix. Between two parts there may be a reshape, a window over earlier frames,
and a requantization, as small files of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from stages.import_model.normalize import Normalized
from stages.import_model.normalize.graph import OneGraph, one_graph
from stages.ir.model_info import TensorInfo
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.chain.frontends.base import Features, Frontend
from stages.ir.models.chain.frontends.build import build_frontend
from stages.ir.models.chain.smooth import smoother
from stages.ir.models.chain.spec import ChainModel, FrontendPart, NetworkPart, SmoothPart
from stages.ir.models.chain.window import sliding_window
from stages.ir.models.onnx_names import OnnxNetwork
from stages.ir.models.tflite_reader import read
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.declaration import INTEGERS
from stages.ir.operators.table import has_state
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError, error_at
from stages.support.messages.wording import several

_FRONTEND = ("model", "chain", 0, "frontend")
_NO_SCALE = ": integers without a scale can only be read as the same type"


@dataclass(frozen=True)
class Network:
    """A network of the chain: its number in it, its name, and its normalized file."""

    at: int
    name: str
    file: Normalized

    def end_name(self, index: int) -> str:
        """Return the name of an input or output, in an ONNX file that of its value."""
        names = {index: traced.name for network, _ in self.file.onnx for index, traced in network.names.items()}
        return names.get(index, self.file.info.tensors[index].name)


@dataclass(frozen=True)
class Part:
    """A part of the joined file: its name and its operators [start, end)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Joined:
    """The joined file and its parts."""

    file: Normalized
    parts: tuple[Part, ...]


def joined(chain: ChainModel, networks: Sequence[Network]) -> Joined:
    """Return the chain as one file. Raises StageError for parts that do not fit."""
    by_place = {network.at: network for network in networks}
    names, writer = _names(chain, by_place), _Writer()
    outputs: list[TensorInfo] = []
    previous = ""
    for at, part in enumerate(chain.chain):
        name = names[at]
        with error_at("model", "chain", at):
            if isinstance(part, FrontendPart):
                following = by_place.get(at + 1)
                outputs = writer.add(build_frontend(part.frontend, _features(part.frontend, following)), name, [None])
            elif isinstance(part, SmoothPart):
                outputs = writer.add(_smoothed(part, at, name, previous, outputs), name, _indices(outputs))
            else:
                frontend = chain.frontend if at == 1 else None
                outputs = writer.network(by_place[at], name, part, previous, outputs, frontend)
        writer.end(name)
        previous = name
    writer.graph.outputs += _indices(outputs)
    data = writer.graph.pack()
    notes = [
        f"{name}: {note}"
        for name, network in zip(_in_order(names, by_place), networks, strict=True)
        for note in network.file.notes
    ]
    return Joined(
        Normalized(data, read(data, "the chain"), "", tuple(notes), writer.rules, tuple(writer.onnx)),
        tuple(writer.parts),
    )


def _in_order(names: Sequence[str], by_place: Mapping[int, Network]) -> list[str]:
    return [names[at] for at in by_place]


def _indices(tensors: Sequence[TensorInfo]) -> list[int]:
    return [tensor.index for tensor in tensors]


def _names(chain: ChainModel, networks: Mapping[int, Network]) -> list[str]:
    """Return the parts' names: by recipe, else kind or model, numbered if repeated."""
    names: list[str] = []
    for at, part in enumerate(chain.chain):
        default = networks[at].name if at in networks else "frontend" if isinstance(part, FrontendPart) else "smooth"
        name, number = part.name or default, 1
        while name in names:
            number += 1
            name = f"{part.name or default}_{number}"
        names.append(name)
    return names


def _features(frontend: Frontend, following: Network | None) -> Features:
    """Return the features that a front end computes per run for the next network."""
    if following is None:
        return Features(frontend.frames or 1)
    reader, frames = _feature_reader(frontend, following)
    is_stateful = has_state(following.file.info)
    new_frames = frontend.frames or (frames if is_stateful else 1)
    if new_frames > frames or (is_stateful and new_frames != frames):
        reads = f"{following.name} reads {frames}{' and has state' if is_stateful else ''}"
        raise StageError(
            f"the front end computes {new_frames} frames per run, but {reads}",
            hint=f"Set frames to {frames}{'' if is_stateful else ' or less'}.",
            at=(*_FRONTEND, "frames"),
        )
    scale = float(reader.scale[0]) if reader.scale.size else None
    return Features(new_frames, reader.dtype, scale, _zero_point(reader))


def _feature_reader(frontend: Frontend, network: Network) -> tuple[TensorInfo, int]:
    """Return the network's input and its number of frames.

    Raises StageError if features do not fill it.
    """
    info = network.file.info
    reader, channels = info.tensors[info.inputs[0]], frontend.feature_channels
    sizes = [size for size in reader.shape if size != 1]
    if prod(sizes) % channels or (len(sizes) > 1 and sizes[-1] != channels):
        if len(sizes) > 2:
            raise StageError(
                f"{network.name} reads {list(reader.shape)}, which are not features: frames x channels",
                hint="After a front end, use a network that was trained on its features.",
                at=("model", "chain", network.at),
            )
        raise StageError(
            f"{network.name} reads {list(reader.shape)}; the front end computes {channels} features per frame",
            hint="Set the front end's number of channels to that of the network.",
            at=_FRONTEND,
        )
    return reader, prod(sizes) // channels


def _zero_point(tensor: TensorInfo) -> int:
    return int(tensor.zero_point[0]) if tensor.zero_point.size else 0


def _smoothed(part: SmoothPart, at: int, name: str, previous: str, outputs: Sequence[TensorInfo]) -> bytes:
    if len(outputs) != 1:
        raise StageError(f"{name} needs one output before it, but {previous} has {len(outputs)}")
    return smoother(part.smooth, outputs[0], previous, ("model", "chain", at, "smooth"))


class _Writer:
    """The joined graph under construction."""

    def __init__(self) -> None:
        self.graph = OneGraph([], [memoryview(b"")])
        self.parts: list[Part] = []
        self.rules: dict[int, Mapping[str, Any]] = {}
        self.onnx: list[tuple[OnnxNetwork, bytes]] = []
        self._places: dict[int, int] = {}  # of the tensors of the last file

    def end(self, name: str) -> None:
        """End a part."""
        start = self.parts[-1].end if self.parts else 0
        self.parts.append(Part(name, start, len(self.graph.operators)))

    def network(
        self,
        network: Network,
        name: str,
        part: NetworkPart,
        previous: str,
        outputs: Sequence[TensorInfo],
        frontend: Frontend | None,
    ) -> list[TensorInfo]:
        """Append a network and its adapters to the part before it."""
        info, file = network.file.info, network.file
        sources = _sources(network, name, part, previous, outputs)
        bound: list[int | None] = []
        for index, source in zip(info.inputs, sources, strict=True):
            if source is None:
                bound.append(None)
                continue
            reader = info.tensors[index]
            data = _adapter(source, reader, part, name, previous, frontend)
            bound.append(source.index if data is None else self.add(data, name, [source.index])[0].index)
        start = len(self.graph.operators)
        results = [
            replace(tensor, name=network.end_name(index))
            for index, tensor in zip(info.outputs, self.add(file.data, name, bound), strict=True)
        ]
        self.rules |= {start + number: rule for number, rule in file.rules.items()}
        for of_onnx, original in file.onnx:
            self.onnx.append((of_onnx.moved(f"{network.at}.onnx", start, self._places), original))
        used = {source.index for source in sources if source is not None}
        self.graph.outputs += [tensor.index for tensor in outputs if tensor.index not in used]
        return results

    def add(self, data: bytes, name: str, sources: Sequence[int | None]) -> list[TensorInfo]:
        """Append a file; return its outputs.

        sources  tensors of the joined graph for the file's inputs, None for an input of the chain
        """
        info, graph, joined_graph = read(data, name), one_graph(data, name, 0), self.graph
        places: dict[int, int] = {}
        for index, source in zip(info.inputs, sources, strict=True):
            if source is not None:
                places[index] = source
        first_buffer, codes = len(joined_graph.buffers), [self._code(code) for code in graph.codes]
        joined_graph.buffers += graph.buffers
        for index, tensor in enumerate(graph.tensors):
            if index in places:
                continue
            places[index] = len(joined_graph.tensors)
            tensor.name = f"{name}/".encode() + (tensor.name or b"")
            tensor.buffer = first_buffer + tensor.buffer if tensor.buffer else 0
            joined_graph.tensors.append(tensor)
        for operator in graph.operators:
            operator.opcodeIndex = codes[operator.opcodeIndex]
            for field in ("inputs", "outputs", "intermediates"):
                values = getattr(operator, field)
                if values is not None:
                    moved = [places[int(index)] if index >= 0 else -1 for index in values]
                    setattr(operator, field, np.array(moved, np.int32))
            joined_graph.operators.append(operator)
        for index, source in zip(info.inputs, sources, strict=True):
            if source is None:
                joined_graph.inputs.append(places[index])
        self._places = places
        return [replace(info.tensors[index], index=places[index]) for index in info.outputs]

    def _code(self, code: Any) -> int:
        """Return the number of an operator code; append it if it is new."""
        for number, known in enumerate(self.graph.codes):
            if vars(known) == vars(code):
                return number
        self.graph.codes.append(code)
        return len(self.graph.codes) - 1


def _sources(
    network: Network, name: str, part: NetworkPart, previous: str, outputs: Sequence[TensorInfo]
) -> list[TensorInfo | None]:
    """Return the connected output for each input of a network; None for an input of the chain."""
    info = network.file.info
    if not previous:
        return [None] * len(info.inputs)
    names = [network.end_name(index) for index in info.inputs]
    if part.inputs is None:
        if len(names) != len(outputs):
            raise StageError(
                f"{previous} has {len(outputs)} outputs, {name} {len(names)} inputs",
                hint=f"Connect them by name: inputs: {{{escape.name(names[0])}: {_own(outputs[0], previous)}}}",
            )
        return [*outputs]
    by_name = {_own(tensor, previous): tensor for tensor in outputs}
    for key, value in part.inputs.items():
        for text, known, whose in (
            (key, names, f"{name} has no input"),
            (value, [*by_name], f"{previous} has no output"),
        ):
            if text not in known:
                raise StageError(
                    f"{whose} {escape.quoted(text)}",
                    hint=f"It has {several([*map(escape.name, known)], 10)}.",
                    at=("model", "chain", network.at, "inputs", key),
                )
    return [by_name[part.inputs[own]] if own in part.inputs else None for own in names]


def _own(tensor: TensorInfo, part: str) -> str:
    """Return a tensor's name without its part."""
    return escape.name(tensor.name.removeprefix(f"{part}/"))


def _adapter(
    source: TensorInfo, reader: TensorInfo, part: NetworkPart, name: str, previous: str, frontend: Frontend | None
) -> bytes | None:
    """Return an adapter file between an output and its reader; None if they match.

    Raises StageError for shapes, types or scales that do not fit.
    """
    b = ModelBuilder()
    x = b.input("x", source.shape, source.dtype, _scale(source), _zero_point(source))
    if _is_other_type(source, reader):
        if not (part.convert and _is_convertible(source, reader)):
            hint = "set `convert: true` in that part"
            if not _is_convertible(source, reader):
                hint = f"This cannot be converted{_NO_SCALE if not source.scale.size else ''}."
            message = f"{previous} writes {_described(source)}; {name} reads {_described(reader)}"
            raise StageError(message, hint=hint)
        x = _converted(b, x, reader)
    sizes, wanted = ([size for size in tensor.shape if size != 1] for tensor in (source, reader))
    if prod(sizes) != prod(reader.shape):
        if frontend is None:  # _features has compared them
            raise _other_shape(source, reader, name, previous)
        channels = frontend.feature_channels
        rows = b.reshape(x, (prod(sizes) // channels, channels), name="frames")
        x = sliding_window(b, rows, prod(reader.shape) // channels)
    elif sizes != wanted and (frontend is None or len(wanted) > 1):
        raise _other_shape(source, reader, name, previous)
    if x.shape != reader.shape:
        x = b.reshape(x, reader.shape, name="input")
    if x.index == 0:
        return None
    b.output(x)
    return b.build()


def _other_shape(source: TensorInfo, reader: TensorInfo, name: str, previous: str) -> StageError:
    is_moved = len(source.shape) == 4 and sorted(source.shape) == sorted(reader.shape)
    return StageError(
        f"{previous} writes {list(source.shape)}; {name} reads {list(reader.shape)}",
        hint="For images of an ONNX file with channels last, set `layout: nhwc` in its part." if is_moved else "",
    )


def _is_other_type(source: TensorInfo, reader: TensorInfo) -> bool:
    if source.dtype != reader.dtype:
        return True
    return bool(reader.scale.size) and (_scale(source), _zero_point(source)) != (_scale(reader), _zero_point(reader))


def _scale(tensor: TensorInfo) -> float | None:
    return float(tensor.scale[0]) if tensor.scale.size else None


def _described(tensor: TensorInfo) -> str:
    if not tensor.scale.size:
        return f"{tensor.dtype} without a scale" if tensor.dtype in INTEGERS else tensor.dtype
    return f"{tensor.dtype} of scale {_scale(tensor):.6g}, zero point {_zero_point(tensor)}"


def _is_convertible(source: TensorInfo, reader: TensorInfo) -> bool:
    """Return whether `_converted` has a conversion between two types that differ."""
    if not reader.scale.size:
        return reader.dtype == "float32" and bool(source.scale.size)
    if source.dtype == "float32" or source.scale.size:
        return reader.dtype in INTEGERS
    return source.dtype == reader.dtype


def _converted(b: ModelBuilder, x: Tensor, reader: TensorInfo) -> Tensor:
    """Append the conversion of `x`.

    Integers without a scale have the reader's: RESHAPE keeps the bytes.
    """
    if not reader.scale.size:
        return b.dequantize(x, name="converted")
    quantization = (float(reader.scale[0]), _zero_point(reader))
    if x.scale or x.dtype == "float32":
        return b.quantize(x, reader.dtype, quantization, name="converted")
    return b.reshape(replace(x, scale=(quantization[0],), zero_point=(quantization[1],)), x.shape, name="converted")
