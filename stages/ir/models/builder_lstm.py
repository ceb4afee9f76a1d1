"""The LSTM part of ModelBuilder."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.models.tflite_writer import Tensor, TFLiteWriter
from stages.ir.operators.lstm import GATES
from stages.ir.operators.table import OPERATORS

Array = npt.NDArray[Any]
Quant = tuple[float, int]
_TANH = 4


class LstmOperators(TFLiteWriter):
    """UNIDIRECTIONAL_SEQUENCE_LSTM with its states and intermediates."""

    def lstm(
        self,
        x: Tensor,
        weights: Array,
        recurrent: Array,
        bias: Array,
        *,
        scales: tuple[float, float] | None = None,
        cell_scale: float = 2.0**-11,
        cell_clip: float = 0.0,
        time_major: bool = False,
        out: Quant | None = None,
        name: str = "lstm",
    ) -> Tensor:
        """UNIDIRECTIONAL_SEQUENCE_LSTM without options such as peepholes.

        The gates are input, forget, cell and output. weights [4, units, depth], recurrent [4, units, units], bias [4,
        units]; scales: of weights and recurrent.
        """
        of_weights, of_recurrent = scales or (None, None)
        product = float(np.float32(x.scale[0]) * np.float32(of_weights)) if of_weights else None
        batch, units = x.shape[1 if time_major else 0], weights.shape[1]
        parts = [
            [self.constant(f"{name}/{gate}/{what}", array[k], scale) for k, gate in enumerate(GATES)]
            for what, array, scale in (
                ("weights", weights, of_weights),
                ("recurrent", recurrent, of_recurrent),
                ("bias", bias, product),
            )
        ]
        hidden = self.variable(f"{name}/hidden", (batch, units), x.dtype, *(out or ()))
        cell_type = ("int16", cell_scale) if x.scale else (x.dtype, None)
        cell = self.variable(f"{name}/cell", (batch, units), *cell_type)
        inputs = [x, *parts[0], *parts[1], None, None, None, *parts[2], None, None, hidden, cell, *[None] * 4]
        fields = {"fusedActivationFunction": _TANH, "cellClip": cell_clip, "timeMajor": time_major}
        output = self.tensor(name, (*x.shape[:2], units), x.dtype, *(out or ()))
        quants = [*[(2.0**-12, 0)] * 4, out] if out else []
        intermediates = [
            self.tensor(f"{name}/between_{k}", (1,), x.dtype, *(quant or ())) for k, quant in enumerate(quants)
        ]
        op, table = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
        self.operator(
            op,
            inputs,
            [output],
            table,
            fields,
            version=OPERATORS[op].litert.version if x.scale else 1,
            intermediates=intermediates,
        )
        return output
