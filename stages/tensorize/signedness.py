"""Signedness legalization: choose int8 or uint8 for 8-bit tensors by the cost of layers.

An engine may read unsigned bytes only. An int8 tensor is then stored as uint8 with a zero point that is larger by 128:
the same values, and the same bytes except for the top bit. Neighbouring layers compute in that type too if they can.
A tensor that is needed in both types is converted (flipped) by a requantization that changes only the zero point:

    x int8 -> [flip] -> uint8 -> conv2d -> uint8 -> add -> uint8 -> conv2d -> int8 -> softmax -> int8 y

Each tensor is written in one type, and each layer reads it in one. The sum of the costs of layers and flips is
minimized (`stages.tensorize.elimination`). The model's inputs and outputs keep their types.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.ir.graph import Graph, Layer, LayerView, Quant, Requantize, Tensor, storage_of
from stages.ir.layers import Shifted
from stages.ir.layers.tensor import DType
from stages.ir.operators.floats import Float
from stages.lower.offload.kernel import OffloadKernel
from stages.tensorize.elimination import Costs, cheapest
from stages.tensorize.sharing import renames_only

Price = Callable[[LayerView], float]
"""Instructions of a layer with given types; infinity if no kernel can compute it."""

TYPES: tuple[DType, DType] = ("int8", "uint8")
OUTPUT = -1
"""Reader number of the model's outputs."""

# A tensor as written (reader None) or as read by a layer.
Variable = tuple[int | None, str]
Types = Mapping[Variable, DType]

_MANY = 4  # tensors; layers with as many or more use one type
_TOP_BIT = 128
_ONE = (1 << 30, 1)  # the multiplier 1, exactly


def with_cheapest_signedness(graph: Graph, price: Price) -> Graph:
    """Return the graph with the cheapest types and flips, or the graph itself.

    `price` is called for layers with 8-bit tensors that have to be computed, and for flips.
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
    """Return the layer (without index) that converts an 8-bit tensor, and the new tensor."""
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
    """Return the tensor with the same values in an 8-bit type, or the tensor itself."""
    more = _shift(tensor.dtype, dtype)
    if not more:
        return tensor
    quant = tensor.quant
    if quant is not None:
        points = tuple(point + more for point in quant.zero_point)
        quant = Quant(scale=quant.scale, zero_point=points, axis=quant.axis)
    return tensor.model_copy(update={"dtype": dtype, "quant": quant, "added": tensor.added + more})


def in_types(view: LayerView, inputs: Sequence[DType], output: DType) -> LayerView | None:
    """Return the layer with its data in these types, None if its arithmetic would change."""
    shifted = _shifted(view, inputs, output)
    if shifted is None:
        return None
    tensors, arrays = dict(view.tensors), dict(view.arrays)
    for name, dtype in zip(view.layer.inputs, inputs, strict=True):
        tensors[name] = in_type(view.tensors[name], dtype)
    for name in view.layer.outputs:
        tensors[name] = in_type(view.tensors[name], output)
    for role, array in shifted.constants.items():
        arrays[view.layer.constants[role]] = array
    return LayerView(view.layer.model_copy(update={"op": shifted.op}), tensors, arrays)


@dataclass(frozen=True)
class OneType:
    """A layer with its data in one type: the number of flips that this takes, and their cost."""

    view: LayerView
    flips: int
    cost: float


def in_one_type(view: LayerView, dtype: DType, price: Price) -> OneType | None:
    """Return the layer with its 8-bit data in `dtype`, None if its arithmetic would change."""
    inputs = [dtype if tensor.dtype in TYPES else tensor.dtype for tensor in view.inputs]
    (output,) = view.outputs
    uniform = in_types(view, inputs, dtype if output.dtype in TYPES else output.dtype)
    if uniform is None:
        return None
    flipped = {
        tensor.name: tensor for tensor in (*view.inputs, output) if tensor.dtype in TYPES and tensor.dtype != dtype
    }
    return OneType(uniform, len(flipped), sum(_flip_price(tensor, price) for tensor in flipped.values()))


def _flip_price(tensor: Tensor, price: Price) -> float:
    layer, copy = flip(tensor, f"{tensor.name}/flipped")
    return price(LayerView(layer, {tensor.name: tensor, copy.name: copy}, {}))


def why_not_as_uint8(kernel: Kernel, view: LayerView, target: Target) -> str:
    """Return why a uint8 engine cannot compute an int8 layer with uint8 data, else ''."""
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
    """Yield variants of an 8-bit layer that read uint8 and write either type."""
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
    """The variables with their choices and costs."""

    graph: Graph
    price: Price

    def domains(self) -> dict[Variable, tuple[DType, ...]]:
        """Return the types of each variable, the present one first.

        Tensors that share memory are written in one type.
        """
        graph = self.graph
        fixed = {storage_of(graph.tensors, name)[0] for name in graph.inputs}
        fixed |= {
            storage_of(graph.tensors, name)[0]
            for layer in graph.layers
            for name in layer.outputs
            if not renames_only(graph, layer) and not self._is_free(layer)
        }
        domains: dict[Variable, tuple[DType, ...]] = {}
        for name, tensor in graph.tensors.items():
            if tensor.dtype in TYPES:
                root = storage_of(graph.tensors, name)[0]
                constant = graph.tensors[root].constant
                domains[None, root] = _types(graph.tensors[root].dtype, only=constant or root in fixed)
        for layer in graph.layers:
            if not renames_only(graph, layer):
                for name in layer.inputs:
                    tensor, root = graph.tensors[name], storage_of(graph.tensors, name)[0]
                    if tensor.dtype in TYPES:
                        view_of_constant = graph.tensors[root].constant and not tensor.constant
                        only = view_of_constant or not self._is_free(layer)
                        domains[layer.index, name] = _types(tensor.dtype, only=only)
        for name in graph.outputs:
            if graph.tensors[name].dtype in TYPES:
                domains[OUTPUT, name] = _types(graph.tensors[name].dtype, only=True)
        return domains

    def of_layers(self, domains: Mapping[Variable, tuple[DType, ...]]) -> Iterator[Costs[Variable]]:
        """Yield the costs of each layer by its types."""
        for layer in self.graph.layers:
            if renames_only(self.graph, layer) or not self._is_free(layer):
                continue
            variables = self._of_layer(layer)
            prices = [
                self._instructions(layer, dict(zip(variables, types, strict=True)))
                for types in product(*(domains[variable] for variable in variables))
            ]
            yield Costs(tuple(variables), np.array(prices).reshape([len(domains[variable]) for variable in variables]))

    def of_tensors(self, domains: Mapping[Variable, tuple[DType, ...]]) -> Iterator[Costs[Variable]]:
        """Yield the cost of each tensor's flip: one, if any reader needs it."""
        for name, tensor in self.graph.tensors.items():
            root = storage_of(self.graph.tensors, name)[0]
            reads = [variable for variable in domains if variable[0] is not None and variable[1] == name]
            if not reads or self.graph.tensors[root].constant:
                continue
            variables = [(None, root), *reads]
            cost = _flip_price(tensor, self.price)
            sizes = [len(domains[variable]) for variable in variables]
            differ = [len(set(types)) > 1 for types in product(*(domains[variable] for variable in variables))]
            yield Costs(tuple(variables), np.where(np.array(differ).reshape(sizes), np.float64(cost), 0.0))

    def _is_free(self, layer: Layer) -> bool:
        """Return whether the types of the layer's data may change."""
        return not isinstance(layer.op, Float)

    def _of_layer(self, layer: Layer) -> list[Variable]:
        reads: list[Variable] = [(layer.index, name) for name in dict.fromkeys(layer.inputs)]
        homes: list[Variable] = [(None, storage_of(self.graph.tensors, name)[0]) for name in layer.outputs]
        return [v for v in reads + homes if self.graph.tensors[v[1]].dtype in TYPES]

    def _instructions(self, layer: Layer, types: Types) -> float:
        """Return the layer's instructions, infinity if no kernel can compute it."""
        if len(types) >= _MANY and len(set(types.values())) > 1:
            return float("inf")
        graph = self.graph
        inputs = [types.get((layer.index, name), graph.tensors[name].dtype) for name in layer.inputs]
        out = layer.outputs[0]
        output = types.get((None, storage_of(graph.tensors, out)[0]), graph.tensors[out].dtype)
        view = in_types(graph.view(layer), inputs, output)
        return float("inf") if view is None else self.price(view)


def _types(dtype: DType, *, only: bool) -> tuple[DType, ...]:
    return (dtype,) if only else (dtype, TYPES[1 - TYPES.index(dtype)])


class _Rewriting:
    """Rewrites the graph to the chosen types, each flip before its first reader."""

    def __init__(self, graph: Graph, types: Types) -> None:
        self.graph, self.types = graph, types
        self.tensors = {name: self._written(tensor) for name, tensor in graph.tensors.items()}
        self.constants = dict(graph.constants)
        self.layers: list[Layer] = []
        self.flipped: dict[str, str] = {}

    def run(self) -> Graph:
        """Return the rewritten graph."""
        for layer in self.graph.layers:
            self._layer(layer)
        outputs = [self._read(OUTPUT, name) for name in self.graph.outputs]
        return replace(self.graph, tensors=self.tensors, layers=self.layers, outputs=outputs, constants=self.constants)

    def _written(self, tensor: Tensor) -> Tensor:
        root = storage_of(self.graph.tensors, tensor.name)[0]
        return in_type(tensor, self.types.get((None, root), tensor.dtype)) if tensor.dtype in TYPES else tensor

    def _layer(self, layer: Layer) -> None:
        view = self.graph.view(layer)
        if renames_only(self.graph, layer):
            self._append(layer)
            return
        inputs = [self.types.get((layer.index, name), self.graph.tensors[name].dtype) for name in layer.inputs]
        shifted = _shifted(view, inputs, self.tensors[layer.outputs[0]].dtype)
        assert shifted is not None  # otherwise its cost is infinite
        names = {
            role: self._constant(f"{layer.constants[role]}/flipped", array) for role, array in shifted.constants.items()
        }
        reads = tuple(self._read(layer.index, name) for name in layer.inputs)
        self._append(
            layer.model_copy(update={"op": shifted.op, "inputs": reads, "constants": {**layer.constants, **names}})
        )

    def _append(self, layer: Layer) -> None:
        self.layers.append(layer.model_copy(update={"index": len(self.layers)}))

    def _read(self, reader: int, name: str) -> str:
        """Return the tensor in the reader's type; add a flip if there is none yet."""
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
        candidate, number = name, 1
        while candidate in self.tensors:
            number += 1
            candidate = f"{name}#{number}"
        return candidate
