"""The graph and its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from stages.ir.layers import Layer, LayerView, Tensor
from stages.ir.operators.table import layer_of
from stages.support.lazy import np

FORMAT = 1


def _with_operator(layer: Any) -> Any:
    """Replace the JSON of a layer's operator by an instance of its class, found by `op`."""
    if not isinstance(layer, dict):
        return layer
    layer_class = layer_of(layer["op"]["op"])
    if layer_class is None:
        raise ValueError(f"unknown operator {layer['op']['op']!r}; is the plug-in that declares it installed?")
    return {**layer, "op": layer_class.model_validate(layer["op"])}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    format: int = FORMAT
    tensors: list[Tensor]
    layers: list[Annotated[Layer, BeforeValidator(_with_operator)]]
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
        return layer.op.macs_of(self.tensors[layer.outputs[0]])

    def initial_state(self, name: str) -> np.ndarray:
        """Return the value of a state tensor after a reset.

        The constant `begin` of a layer that writes it, else `Tensor.initial`.
        """
        for layer in self.layers:
            if name in layer.state and "begin" in layer.constants:
                return self.constants[layer.constants["begin"]]
        tensor = self.tensors[name]
        return np.full(tensor.shape, tensor.initial, tensor.dtype)

    def save(self, folder: Path) -> None:
        """Write graph.json and constants.npz; equal graphs give equal bytes."""
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
            with np.load(folder / "constants.npz") as npz:
                arrays = {name: npz[name] for name in npz.files}
        return cls({t.name: t for t in file.tensors}, file.layers, file.inputs, file.outputs, arrays)
