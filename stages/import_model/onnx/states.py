"""States: variables of the TFLite file between an output and an input of the ONNX graph.

READ_VARIABLE gives the input its value. ASSIGN_VARIABLE stores the output at the end of the run.
"""

from collections.abc import Sequence

import numpy as np

from stages.import_model.onnx.ends import check_state_shapes
from stages.import_model.onnx.translation import Translation
from stages.import_model.onnx.values import Constant, Dequantized, Order, TensorView, permuted
from stages.ir.models.onnx_names import Traced
from stages.ir.models.tflite_writer import Tensor


def declare_state(t: Translation, name: str, shape: Sequence[int], order: Order, dtype: str) -> Tensor:
    """Declare the state of the input `name`, bind its value, and return it. shape: in ONNX."""
    variable = t.builder.variable(f"{name}/state", permuted(shape, order), dtype)
    t.bind(name, TensorView.of(read(t, variable, name), order))
    return variable


def keep(t: Translation, file: str, output: str, name: str, variable: Tensor, order: Order) -> None:
    """Append the operator that writes the output to the state of the input `name`.

    Initial values are 0.
    """
    value = t.values[output]
    if isinstance(value, Constant):
        array = value.real_values
        value = TensorView.of(t.builder.constant(output, np.ascontiguousarray(array.transpose(order))), order)
    elif isinstance(value, Dequantized):
        value = t.dequantized(output, value)
    shape = [variable.shape[order.index(axis)] for axis in range(len(order))]
    check_state_shapes(file, output, value.shape, name, shape)
    view = t.reordered(value, order)
    t.names.setdefault(view.tensor.index, Traced(output, view.base, view.order))
    zeros = t.builder.constant(f"{name}/zeros", np.zeros(variable.shape, variable.dtype))
    assign(t, variable, view.tensor, zeros)


def read(t: Translation, variable: Tensor, name: str) -> Tensor:
    """Append a copy of a variable."""
    copy = t.builder.tensor(name, variable.shape, variable.dtype)
    t.builder.operator("READ_VARIABLE", [variable], [copy])
    return copy


def assign(t: Translation, variable: Tensor, value: Tensor, begin: Tensor | None = None) -> None:
    """Append the operator that writes a variable. begin: its value after a reset."""
    written = t.builder.tensor(f"{variable.name}/written", variable.shape, variable.dtype)
    t.builder.operator("ASSIGN_VARIABLE", [variable, value, *([begin] if begin is not None else [])], [written])
