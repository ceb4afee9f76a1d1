"""A window over a tensor's last rows, as Keras writes state: read, join, slice, assign."""

import numpy as np

from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_writer import Tensor


def sliding_window(b: ModelBuilder, rows: Tensor, count: int) -> Tensor:
    """Append a window of the last `count` rows, [count, channels]; `rows` is [new, channels].

    Before the first run, earlier rows are real zeros.
    """
    new, channels = rows.shape
    if new == count:
        return rows
    quantization = (rows.scale[0], rows.zero_point[0]) if rows.scale else ()
    zero = rows.zero_point[0] if rows.scale else 0
    state = b.variable("window/state", (count - new, channels), rows.dtype, *quantization)
    earlier, written = (
        b.tensor(f"window/{name}", state.shape, rows.dtype, *quantization) for name in ("earlier", "written")
    )
    b.operator("READ_VARIABLE", [state], [earlier], "ReadVariableOptions")
    window = b.concatenation([earlier, rows], 0, name="window")
    later = b.strided_slice(window, (new, 0), (count, channels), name="window/later")
    first = b.constant("window/first", np.full(state.shape, zero, rows.dtype), *quantization)
    b.operator("ASSIGN_VARIABLE", [state, later, first], [written], "AssignVariableOptions")
    return window
