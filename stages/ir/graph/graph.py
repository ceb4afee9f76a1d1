"""Layers, the graph, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny

from stages.ir.graph.tensor import Tensor
from stages.ir.operators.layer import LayerOp
from stages.ir.operators.table import layer_of
from stages.ir.tensor_layout import Layout

if TYPE_CHECKING:
    import numpy as np

    AnyOp = LayerOp
else:

    def _layer(value: Any) -> LayerOp:
        """Return the operator for its JSON, by `op`."""
        if isinstance(value, LayerOp):
            return value
        layer_class = layer_of(value["op"])
        if layer_class is None:
            raise ValueError(f"unknown operator {value['op']!r}; is the plug-in that declares it installed?")
        return layer_class.model_validate(value)

    AnyOp = Annotated[LayerOp, BeforeValidator(_layer), SerializeAsAny()]

FORMAT = 1


class RequestedLayout(BaseModel):
    """The layout that the recipe requests for a layer's input.

    rule  number of its layout rule, 0 for the `default`
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    layout: Layout
    rule: int


class Layer(BaseModel):
    """One step of the network.

    index      position in execution order, from 0; the number in reports and in the emitted function names
    name       name of the imported operator's (first) output tensor: layout and tensorize rules match it
    inputs     names of data tensors
    state      names of state tensors that it reads and writes
    constants  role (weights, bias, multiplier, shift, table, exp) -> name of the constant
    tflite_op  index and name of the operator in the imported file
    wanted     layout that the recipe requests; None: tensorize decides
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    index: int
    name: str
    op: AnyOp
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: tuple[str, ...] = ()
    constants: dict[str, str] = Field(default_factory=dict)
    tflite_op: tuple[int, str] | None = None
    wanted: RequestedLayout | None = None

    @property
    def kind(self) -> str:
        """The operator's name in rules and reports: conv2d, softmax, logistic, pad, ..."""
        return self.op.named


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    format: int = FORMAT
    tensors: list[Tensor]
    layers: list[Layer]
    inputs: list[str]
    outputs: list[str]


@dataclass
class Graph:
    """Tensors, layers, constants by name, and the names of inputs and outputs in model order."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def view(self, layer: Layer) -> LayerView:
        """Return a layer with its tensors and constants."""
        return LayerView(layer, self.tensors, self.constants)

    def macs(self, layer: Layer) -> int:
        """Return the multiply-accumulates of one inference, 0 for operators without any.

        Padding is included, as papers count them.
        """
        return layer.op.products(self.tensors[layer.outputs[0]])

    def initial_state(self, name: str) -> np.ndarray:
        """Return the value of a state tensor after a reset.

        The constant `begin` of a layer that writes it, else `Tensor.initial`.
        """
        import numpy as np

        for layer in self.layers:
            if name in layer.state and "begin" in layer.constants:
                return self.constants[layer.constants["begin"]]
        tensor = self.tensors[name]
        return np.full(tensor.shape, tensor.initial, tensor.dtype)

    def save(self, folder: Path) -> None:
        """Write graph.json and constants.npz; equal graphs give equal bytes."""
        import numpy as np

        file = _File(tensors=list(self.tensors.values()), layers=self.layers, inputs=self.inputs, outputs=self.outputs)
        (folder / "graph.json").write_text(file.model_dump_json(indent=1) + "\n")
        constants: dict[str, Any] = {name: self.constants[name] for name in sorted(self.constants)}
        np.savez(folder / "constants.npz", **constants)

    @classmethod
    def load(cls, folder: Path, *, constants: bool = True) -> Graph:
        """Read the files of `save`. Raises ValueError for another format."""
        file = _File.model_validate_json((folder / "graph.json").read_text())
        if file.format != FORMAT:
            raise ValueError(f"graph.json has format {file.format}; this version reads {FORMAT}")
        arrays: dict[str, np.ndarray] = {}
        if constants:
            import numpy as np

            with np.load(folder / "constants.npz") as npz:
                arrays = {name: npz[name] for name in npz.files}
        return cls({t.name: t for t in file.tensors}, file.layers, file.inputs, file.outputs, arrays)


@dataclass(frozen=True)
class LayerView:
    """A layer with its tensors and constants: everything that a kernel reads."""

    layer: Layer
    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, np.ndarray]

    @property
    def op(self) -> Any:
        """The layer's operator with its parameters."""
        return self.layer.op

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The data inputs."""
        return tuple(self.tensors[name] for name in self.layer.inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return tuple(self.tensors[name] for name in self.layer.outputs)

    @property
    def states(self) -> tuple[Tensor, ...]:
        """The state tensors."""
        return tuple(self.tensors[name] for name in self.layer.state)

    def constant(self, role: str) -> np.ndarray:
        """Return the constant with this role. Raises KeyError if the layer has none."""
        return self.arrays[self.layer.constants[role]]

    def bits(self, role: str) -> int:
        """Return the bits that each value of this constant needs: at most 4 for int4 weights.

        Signed types count in two's complement; the array itself has whole bytes.
        """
        from stages.ir.graph.packed import bits_of

        return bits_of(self.constant(role))

    def has(self, role: str) -> bool:
        """Whether the layer has a constant with this role."""
        return role in self.layer.constants
