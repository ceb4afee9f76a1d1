"""Which tensors of 8 bits are kept as int8 and which as uint8, decided together with what computes the layers.

An engine may read unsigned bytes only. An int8 tensor is then kept as uint8, its zero point larger by 128: the same
numbers, and the same bytes but for the top bit. Layers on either side compute in that type as well, where they can; a
tensor that is needed in both types is flipped, by a requantization that moves the zero point alone:

    x int8 -> [flip] -> uint8 -> conv2d -> uint8 -> add -> uint8 -> conv2d -> int8 -> softmax -> int8 y

Each tensor is written in one type, each layer reads it in one. The least sum of what layers and flips cost is taken
(`stages.tensorize.elimination`). The model's inputs and outputs keep their types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from stages.ir.graph import Graph, Layer, LayerView, Quant, Requantize, Tensor, place
from stages.ir.graph.tensor import DType
from stages.ir.operators.layer import Shifted
from stages.lower.offload.kernel import OffloadKernel
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.sharing import renames_only

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.backends.targets.spec import Target

Price = Callable[[LayerView], float]
"""Instructions of a layer with its tensors in some types, infinity where nothing can compute it."""

TYPES: tuple[DType, DType] = ("int8", "uint8")
OUTPUT = -1
"""The reader of the model's outputs."""

# A tensor as it is written (reader None), or as a layer reads it.
Variable = tuple[int | None, str]
Types = Mapping[Variable, DType]

_MANY = 4  # tensors; layers that have more of them have all in one type
_TOP_BIT = 128
_ONE = (1 << 30, 1)  # the multiplier 1, exactly


def with_cheapest_signedness(graph: Graph, price: Price) -> Graph:
    """The pass: the graph with types and flips that cost least; the graph itself where that is what it has.

    `price` is asked about layers of 8-bit tensors that have to be computed, flips among them.
    """
    choices = _Choices(graph, price)
    domains = choices.domains()
    costs = [*choices.of_layers(domains), *choices.of_tensors(domains)]
    numbers = cheapest({variable: len(domain) for variable, domain in domains.items()}, costs)
    types = {variable: domains[variable][number] for variable, number in numbers.items()}
    if not any(numbers.values()):
        return graph
    return _Rewriting(graph, types).run()


def flip(tensor: Tensor, name: str) -> tuple[Layer, Tensor]:
    """The layer (without an index) that copies an 8-bit tensor to the other type, and the copy."""
    dtype = TYPES[1 - TYPES.index(tensor.dtype)]
    copy = in_type(tensor, dtype).model_copy(
        update={"name": name, "alias_of": None, "offset": 0, "tflite_index": None, "constant": False}
    )
    limits = np.iinfo(dtype)
    op = Requantize(
        input_zero_point=tensor.zero_point,
        multiplier=_ONE[0],
        shift=_ONE[1],
        output_zero_point=tensor.zero_point + _shift(tensor.dtype, dtype),
        act_min=int(limits.min),
        act_max=int(limits.max),
    )
    return Layer(index=0, name=name, op=op, inputs=(tensor.name,), outputs=(name,)), copy


def in_type(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor with the same numbers in the other type of 8 bits, or the tensor itself."""
    more = _shift(tensor.dtype, dtype)
    if not more:
        return tensor
    quant = tensor.quant
    if quant is not None:
        points = tuple(point + more for point in quant.zero_point)
        quant = Quant(scale=quant.scale, zero_point=points, axis=quant.axis)
    return tensor.model_copy(update={"dtype": dtype, "quant": quant, "added": tensor.added + more})


def in_types(view: LayerView, inputs: Sequence[DType], output: DType) -> LayerView | None:
    """The layer with its data in these types, None where its arithmetic would be another. Its name stays."""
    found = _shifted(view, inputs, output)
    if found is None:
        return None
    tensors, arrays = dict(view.tensors), dict(view.arrays)
    for name, dtype in zip(view.layer.inputs, inputs, strict=True):
        tensors[name] = in_type(view.tensors[name], dtype)
    for name in view.layer.outputs:
        tensors[name] = in_type(view.tensors[name], output)
    for role, array in found.constants.items():
        arrays[view.layer.constants[role]] = array
    return LayerView(view.layer.model_copy(update={"op": found.op}), tensors, arrays)


@dataclass(frozen=True)
class OneType:
    """A layer with its data in one type, and so many flips of its tensors that this takes, with their cost."""

    view: LayerView
    flips: int
    cost: float


def in_one_type(view: LayerView, dtype: DType, price: Price) -> OneType | None:
    """The layer with its 8-bit data in that type; None where its arithmetic would be another."""
    inputs = [dtype if tensor.dtype in TYPES else tensor.dtype for tensor in view.inputs]
    (output,) = view.outputs
    found = in_types(view, inputs, dtype if output.dtype in TYPES else output.dtype)
    if found is None:
        return None
    flipped = {
        tensor.name: tensor for tensor in (*view.inputs, output) if tensor.dtype in TYPES and tensor.dtype != dtype
    }
    return OneType(found, len(flipped), sum(_flip_price(tensor, price) for tensor in flipped.values()))


def _flip_price(tensor: Tensor, price: Price) -> float:
    layer, copy = flip(tensor, f"{tensor.name}/flipped")
    return price(LayerView(layer, {tensor.name: tensor, copy.name: copy}, {}))


def why_not_as_uint8(kernel: Kernel, view: LayerView, target: Target) -> str:
    """Why an engine that reads uint8 cannot compute a layer on int8 with its data as uint8 either, else ''."""
    types = [tensor.dtype for tensor in (*view.inputs, *view.outputs)]
    if not isinstance(kernel, OffloadKernel) or "int8" not in types or not set(types) <= set(TYPES):
        return ""
    if "int8" in kernel.machine.accelerator.reads(view):
        return ""
    reason = ""
    for flipped in as_uint8(view):
        reason = kernel.why_not(flipped, target)
        if not reason:
            break
    return reason


def as_uint8(view: LayerView) -> Iterator[LayerView]:
    """A layer of 8-bit data that reads uint8 alone and writes either type."""
    if {tensor.dtype for tensor in (*view.inputs, *view.outputs)} <= set(TYPES):
        for output in TYPES:
            flipped = in_types(view, ["uint8"] * len(view.inputs), output)
            if flipped is not None:
                yield flipped


def _shifted(view: LayerView, inputs: Sequence[DType], output: DType) -> Shifted | None:
    moved = [_shift(tensor.dtype, dtype) for tensor, dtype in zip(view.inputs, inputs, strict=True)]
    return view.op.shifted(view, moved, _shift(view.outputs[0].dtype, output))  # type: ignore[no-any-return]


def _shift(before: str, after: str) -> int:
    return 0 if before == after else _TOP_BIT if after == "uint8" else -_TOP_BIT


@dataclass(frozen=True)
class _Choices:
    """What can be chosen, and what it costs."""

    graph: Graph
    price: Price

    def domains(self) -> dict[Variable, tuple[DType, ...]]:
        """The types of each variable, first the one it has. Tensors that share memory are written in one type."""
        graph = self.graph
        fixed = {place(graph.tensors, name)[0] for name in graph.inputs}
        fixed |= {
            place(graph.tensors, name)[0]
            for layer in graph.layers
            for name in layer.outputs
            if not renames_only(graph, layer) and not self._is_free(layer)
        }
        found: dict[Variable, tuple[DType, ...]] = {}
        for name, tensor in graph.tensors.items():
            if tensor.dtype in TYPES:
                root = place(graph.tensors, name)[0]
                constant = graph.tensors[root].constant
                found[None, root] = _both(graph.tensors[root].dtype, only=constant or root in fixed)
        for layer in graph.layers:
            if not renames_only(graph, layer):
                for name in layer.inputs:
                    tensor, root = graph.tensors[name], place(graph.tensors, name)[0]
                    if tensor.dtype in TYPES:
                        view_of_constant = graph.tensors[root].constant and not tensor.constant
                        only = view_of_constant or not self._is_free(layer)
                        found[layer.index, name] = _both(tensor.dtype, only=only)
        for name in graph.outputs:
            if graph.tensors[name].dtype in TYPES:
                found[OUTPUT, name] = _both(graph.tensors[name].dtype, only=True)
        return found

    def of_layers(self, domains: Mapping[Variable, tuple[DType, ...]]) -> Iterator[Costs[Variable]]:
        """What each layer takes for the types that it reads and writes."""
        for layer in self.graph.layers:
            if renames_only(self.graph, layer) or not self._is_free(layer):
                continue
            own = self._of_layer(layer)
            prices = [
                self._instructions(layer, dict(zip(own, types, strict=True)))
                for types in product(*(domains[variable] for variable in own))
            ]
            yield Costs(tuple(own), np.array(prices).reshape([len(domains[variable]) for variable in own]))

    def of_tensors(self, domains: Mapping[Variable, tuple[DType, ...]]) -> Iterator[Costs[Variable]]:
        """What the flip of each tensor takes: one, if any reader needs it."""
        for name, tensor in self.graph.tensors.items():
            root = place(self.graph.tensors, name)[0]
            reads = [variable for variable in domains if variable[0] is not None and variable[1] == name]
            if not reads or self.graph.tensors[root].constant:
                continue
            own = [(None, root), *reads]
            paid = _flip_price(tensor, self.price)
            sizes = [len(domains[variable]) for variable in own]
            differ = [len(set(types)) > 1 for types in product(*(domains[variable] for variable in own))]
            yield Costs(tuple(own), np.where(np.array(differ).reshape(sizes), np.float64(paid), 0.0))

    def _is_free(self, layer: Layer) -> bool:
        """Whether types of its data may change."""
        return layer.op.op != "float"

    def _of_layer(self, layer: Layer) -> list[Variable]:
        reads: list[Variable] = [(layer.index, name) for name in dict.fromkeys(layer.inputs)]
        homes: list[Variable] = [(None, place(self.graph.tensors, name)[0]) for name in layer.outputs]
        return [v for v in reads + homes if self.graph.tensors[v[1]].dtype in TYPES]

    def _instructions(self, layer: Layer, types: Types) -> float:
        """Infinity where nothing can compute it."""
        if len(types) >= _MANY and len(set(types.values())) > 1:
            return float("inf")
        graph = self.graph
        inputs = [types.get((layer.index, name), graph.tensors[name].dtype) for name in layer.inputs]
        out = layer.outputs[0]
        output = types.get((None, place(graph.tensors, out)[0]), graph.tensors[out].dtype)
        view = in_types(graph.view(layer), inputs, output)
        return float("inf") if view is None else self.price(view)


def _both(dtype: DType, *, only: bool) -> tuple[DType, ...]:
    return (dtype,) if only else (dtype, TYPES[1 - TYPES.index(dtype)])


class _Rewriting:
    """The graph with types as chosen, each flip before its first reader."""

    def __init__(self, graph: Graph, types: Types) -> None:
        self.graph, self.types = graph, types
        self.tensors = {name: self._written(tensor) for name, tensor in graph.tensors.items()}
        self.constants = dict(graph.constants)
        self.layers: list[Layer] = []
        self.flipped: dict[str, str] = {}

    def run(self) -> Graph:
        for layer in self.graph.layers:
            self._layer(layer)
        outputs = [self._read(OUTPUT, name) for name in self.graph.outputs]
        return replace(self.graph, tensors=self.tensors, layers=self.layers, outputs=outputs, constants=self.constants)

    def _written(self, tensor: Tensor) -> Tensor:
        root = place(self.graph.tensors, tensor.name)[0]
        return in_type(tensor, self.types.get((None, root), tensor.dtype)) if tensor.dtype in TYPES else tensor

    def _layer(self, layer: Layer) -> None:
        view = self.graph.view(layer)
        if renames_only(self.graph, layer):
            self._append(layer)
            return
        inputs = [self.types.get((layer.index, name), self.graph.tensors[name].dtype) for name in layer.inputs]
        found = _shifted(view, inputs, self.tensors[layer.outputs[0]].dtype)
        assert found is not None  # or it would have cost infinitely much
        names = {
            role: self._constant(f"{layer.constants[role]}/flipped", array) for role, array in found.constants.items()
        }
        reads = tuple(self._read(layer.index, name) for name in layer.inputs)
        self._append(
            layer.model_copy(update={"op": found.op, "inputs": reads, "constants": {**layer.constants, **names}})
        )

    def _append(self, layer: Layer) -> None:
        self.layers.append(layer.model_copy(update={"index": len(self.layers)}))

    def _read(self, reader: int, name: str) -> str:
        """The tensor that the reader reads, made now if it is not there."""
        tensor = self.tensors[name]
        if self.types.get((reader, name), tensor.dtype) == tensor.dtype:
            return name
        if name not in self.flipped:
            self.flipped[name] = copied = self._unused(f"{name}/flipped")
            layer, copy = flip(tensor, copied)
            if tensor.constant:
                values = self.graph.constants[name].astype(np.int16) + copy.added - tensor.added
                self.constants[copied] = values.astype(copy.dtype)
                copy = copy.model_copy(update={"constant": True})
            else:
                self._append(layer)
            self.tensors[copied] = copy
        return self.flipped[name]

    def _constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = array
        return name

    def _unused(self, name: str) -> str:
        found, number = name, 1
        while found in self.tensors:
            number += 1
            found = f"{name}#{number}"
        return found
