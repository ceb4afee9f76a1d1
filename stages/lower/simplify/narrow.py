"""Remove channels from a graph."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer, LayerView, Tensor
from stages.ir.layers.channels import Kept, channels_of
from stages.lower.simplify.coupled_channels import CoupledChannels
from stages.lower.simplify.edits import unused, without_unread


class Narrowing:
    """Narrows a graph: `staying` has bool[sets] for each group of coupled channels."""

    def __init__(self, graph: Graph, coupled_channels: Sequence[CoupledChannels], staying: Sequence[Array]) -> None:
        self.graph = graph
        self.kept: dict[str, Kept] = {}
        for coupled, numbers in zip(coupled_channels, staying, strict=True):
            for name in coupled.sets:
                if name in coupled.values:
                    self.kept[name] = coupled.kept(name, numbers)

    def graph_without(self) -> Graph:
        """Return the narrowed graph."""
        tensors = {name: self.tensor(name) for name in self.graph.tensors}
        constants = dict(self.graph.constants)
        for name, tensor in self.graph.tensors.items():
            if tensor.constant and tensors[name] is not tensor:
                constants[name] = constants[name].reshape(tensor.shape)[..., self.kept[name].channels]
        layers = []
        for layer in self.graph.layers:
            changed, new_constants = self.layer(layer)
            layers.append(changed)
            constants |= new_constants
        return without_unread(replace(self.graph, tensors=tensors, layers=layers, constants=constants))

    def view(self, layer: Layer) -> LayerView:
        """Return one narrowed layer, to estimate its cost."""
        changed, constants = self.layer(layer)
        tensors = {name: self.tensor(name) for name in (*layer.inputs, *layer.outputs)}
        return LayerView(changed, {**self.graph.tensors, **tensors}, {**self.graph.constants, **constants})

    def tensor(self, name: str) -> Tensor:
        """Return the tensor with its remaining channels; the same object if all remain."""
        tensor = self.graph.tensors[name]
        kept = self._kept(tensor)
        if len(kept.channels) == channels_of(tensor):
            return tensor
        of_file = np.arange(channels_of(tensor)) if tensor.channels is None else np.array(tensor.channels)
        shape = (*tensor.shape[:-1], len(kept.channels))
        return tensor.model_copy(update={"shape": shape, "channels": tuple(of_file[kept.channels].tolist())})

    def layer(self, layer: Layer) -> tuple[Layer, Mapping[str, Array]]:
        """Return the narrowed layer, and its constants that differ."""
        inputs, outputs = ([self.graph.tensors[name] for name in names] for names in (layer.inputs, layer.outputs))
        if all(self.tensor(tensor.name) is tensor for tensor in (*inputs, *outputs)):
            return layer, {}
        narrowed = layer.op.narrowed(
            self.graph.view(layer), [self._kept(tensor) for tensor in inputs], self._kept(outputs[0])
        )
        # Other layers may share the constants, so changed ones get new names.
        names = {role: unused(self.graph.constants, f"{layer.name}/{role}") for role in narrowed.constants}
        changed = layer.model_copy(update={"op": narrowed.op, "constants": {**layer.constants, **names}})
        return changed, {names[role]: values for role, values in narrowed.constants.items()}

    def _kept(self, tensor: Tensor) -> Kept:
        every = np.arange(channels_of(tensor))
        return self.kept.get(tensor.name) or Kept(every, every, every)
