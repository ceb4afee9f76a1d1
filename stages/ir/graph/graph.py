"""Layers and the graph, and how they are kept on disk."""

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
        """An operator of the graph as it was written; which one `op` tells."""
        if isinstance(value, LayerOp):
            return value
        found = layer_of(value["op"])
        if found is None:
            raise ValueError(f"no operator is called {value['op']!r}; is the plug-in there that declares it?")
        return found.model_validate(value)

    AnyOp = Annotated[LayerOp, BeforeValidator(_layer), SerializeAsAny()]

FORMAT = 1


class Wanted(BaseModel):
    """The layout in which the recipe wants a layer to read; the number of its layout rule, 0 for the `default`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    layout: Layout
    rule: int


class Layer(BaseModel):
    """One step of the network.

    index      position in execution order, from 0; the number in reports and in the emitted function names
    name       name of the imported operator's (first) output tensor: what layout and tensorize rules match
    inputs     names of data tensors
    state      names of tensors of state that it reads and writes
    constants  the name of the constant for each role (weights, bias, multiplier, shift, table, exp)
    tflite_op  index and name of the operator in the imported file
    wanted     what the recipe says of the layout it reads; without it tensorize decides
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
    wanted: Wanted | None = None

    @property
    def kind(self) -> str:
        """The operator's name as rules and reports write it: conv2d, depthwise_conv2d, softmax, logistic, pad, ..."""
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
    """`inputs` and `outputs` are tensor names in the model's order; `constants` maps names to arrays."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def view(self, layer: Layer) -> LayerView:
        return LayerView(layer, self.tensors, self.constants)

    def macs(self, layer: Layer) -> int:
        """Multiply-accumulates of one inference, padding included, as papers count them; 0 for other operators."""
        return layer.op.products(self.tensors[layer.outputs[0]])

    def beginning(self, name: str) -> np.ndarray:
        """A tensor of state after a reset: the constant `begin` of a layer that writes it, or else `Tensor.initial`."""
        import numpy as np

        for layer in self.layers:
            if name in layer.state and "begin" in layer.constants:
                return self.constants[layer.constants["begin"]]
        tensor = self.tensors[name]
        return np.full(tensor.shape, tensor.initial, tensor.dtype)

    def save(self, folder: Path) -> None:
        """Writes graph.json and constants.npz; the same graph gives the same bytes."""
        import numpy as np

        file = _File(tensors=list(self.tensors.values()), layers=self.layers, inputs=self.inputs, outputs=self.outputs)
        (folder / "graph.json").write_text(file.model_dump_json(indent=1) + "\n")
        constants: dict[str, Any] = {name: self.constants[name] for name in sorted(self.constants)}
        np.savez(folder / "constants.npz", **constants)

    @classmethod
    def load(cls, folder: Path, *, constants: bool = True) -> Graph:
        """Reads what `save` wrote. Raises ValueError for another format."""
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
    """A layer with its tensors and constants at hand: all that a kernel looks at."""

    layer: Layer
    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, np.ndarray]

    @property
    def op(self) -> Any:
        return self.layer.op

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(self.tensors[name] for name in self.layer.inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(self.tensors[name] for name in self.layer.outputs)

    @property
    def states(self) -> tuple[Tensor, ...]:
        return tuple(self.tensors[name] for name in self.layer.state)

    def constant(self, role: str) -> np.ndarray:
        """The constant with this role. KeyError when the layer has none."""
        return self.arrays[self.layer.constants[role]]

    def bits(self, role: str) -> int:
        """The bits that each value of this constant needs: at most 4 of weights that the file has as int4.

        Signed types count in two's complement; the array itself has whole bytes.
        """
        from stages.ir.graph.packed import bits_of

        return bits_of(self.constant(role))

    def has(self, role: str) -> bool:
        return role in self.layer.constants
