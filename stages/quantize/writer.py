"""Append layers, tensors and constants to an integer graph."""

from collections.abc import Mapping, Sequence

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Graph, Layer, LayerOp, Layout, Quant, RequestedLayout, Tensor
from stages.ir.relax_module import CONSTANT, LAYOUT, OperatorCall
from stages.quantize.operator import Operator


class GraphWriter:
    """Writes an integer graph. Layers belong to `operator`, the one that is being lowered."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operator: Operator | None = None

    def tensor(self, tensor: Tensor) -> Tensor:
        """Add a tensor, with a number after its name if that exists (names in files may repeat)."""
        name, number = tensor.name, 1
        while name in self.graph.tensors:
            number += 1
            name = f"{tensor.name}#{number}"
        added = tensor.model_copy(update={"name": name})
        self.graph.tensors[name] = added
        return added

    def intermediate(self, tensor: Tensor, suffix: str, quant: Quant | None) -> Tensor:
        """Add a tensor like `tensor` that the imported file does not have."""
        fields = {
            "name": f"{tensor.name}/{suffix}",
            "quant": quant,
            "tflite_index": None,
            "alias_of": None,
            "constant": False,
            "offset": 0,
        }
        return self.tensor(tensor.model_copy(update=fields))

    def constant_tensor(self, name: str, values: Array, quant: Quant | None, layout: str = "") -> Tensor:
        """Add a constant operand with `values` in physical order; `layout` gives its shape."""
        shape = values.shape
        if layout == "NCHW":
            shape = (shape[0], shape[2], shape[3], shape[1])
        tensor = self.tensor(
            Tensor(name=name, shape=shape, dtype=str(values.dtype), layout=layout, quant=quant, constant=True)  # type: ignore[arg-type]
        )
        self.graph.constants[tensor.name] = np.ascontiguousarray(values)
        return tensor

    def layer(
        self,
        op: LayerOp,
        inputs: Sequence[Tensor],
        output: Tensor,
        constants: Mapping[str, Array] | None = None,
        *,
        alias: bool = False,
        state: Sequence[Tensor] = (),
    ) -> Tensor:
        """Append a layer that computes `output`; with `alias` it shares the first input's memory.

        `state` are the state tensors that it reads and writes.
        """
        assert self.operator is not None
        if alias:
            output = output.model_copy(update={"alias_of": inputs[0].name})
        self.graph.tensors[output.name] = output
        index = len(self.graph.layers)
        names = {role: f"{index:03d}/{role}" for role in constants or {}}
        for role, values in (constants or {}).items():
            self.graph.constants[names[role]] = np.ascontiguousarray(values)
        call = self.operator.call
        self.graph.layers.append(
            Layer(
                index=index,
                name=output.name,
                op=op,
                inputs=tuple(tensor.name for tensor in inputs),
                outputs=(output.name,),
                state=tuple(tensor.name for tensor in state),
                constants=names,
                tflite_op=None if call.op in (LAYOUT, CONSTANT) else (call.index, call.op),
                wanted=_wanted(call),
            )
        )
        return output


def _wanted(call: OperatorCall) -> RequestedLayout | None:
    layout = call.attributes.get("wanted_layout")
    return RequestedLayout(layout=Layout(str(layout)), rule=int(call.attributes["layout_rule"])) if layout else None
