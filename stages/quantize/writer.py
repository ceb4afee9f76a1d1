"""Appends layers, tensors and constants to the integer graph under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stages.ir.graph import Graph, Layer, LayerOp, Layout, Quant, Tensor, Wanted
from stages.ir.relax_module import CONSTANT, LAYOUT, OperatorCall
from stages.quantize.operator import Array, Operator


class GraphWriter:
    """`operator` is the one being lowered; every layer written meanwhile belongs to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operator: Operator | None = None

    def tensor(self, tensor: Tensor) -> Tensor:
        """Adds a tensor. Another of the same name gets a number appended: names in TFLite files may repeat."""
        name, number = tensor.name, 1
        while name in self.graph.tensors:
            number += 1
            name = f"{tensor.name}#{number}"
        added = tensor.model_copy(update={"name": name})
        self.graph.tensors[name] = added
        return added

    def intermediate(self, tensor: Tensor, suffix: str, quant: Quant | None) -> Tensor:
        """A new tensor like `tensor` that the imported file does not have."""
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
        """A constant operand. `values` are in physical order; its logical shape follows from `layout`."""
        shape = values.shape
        if layout == "NCHW":
            shape = (shape[0], shape[2], shape[3], shape[1])
        made = self.tensor(
            Tensor(name=name, shape=shape, dtype=str(values.dtype), layout=layout, quant=quant, constant=True)  # type: ignore[arg-type]
        )
        self.graph.constants[made.name] = np.ascontiguousarray(values)
        return made

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
        """Appends a layer that computes `output`; with `alias`, the output shares the memory of the first input.

        `state` are the tensors of state that it reads and writes.
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


def _wanted(call: OperatorCall) -> Wanted | None:
    layout = call.attributes.get("wanted_layout")
    return Wanted(layout=Layout(str(layout)), rule=int(call.attributes["layout_rule"])) if layout else None
