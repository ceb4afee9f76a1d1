"""The recurrent layers of ModelBuilder."""

import numpy as np

from stages.ir.arrays import Array
from stages.ir.models.tflite_writer import Tensor, TFLiteWriter
from stages.ir.operators.lstm import GATES
from stages.ir.operators.recurrent import ACTIVATIONS, GRU, RNN
from stages.ir.operators.table import OPERATORS

Quant = tuple[float, int]
_TANH = 4


class LstmOperators(TFLiteWriter):
    """Recurrent layers with their states."""

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
        states: tuple[Tensor, Tensor] | None = None,
        name: str = "lstm",
    ) -> Tensor:
        """UNIDIRECTIONAL_SEQUENCE_LSTM without options such as peepholes.

        The gates are input, forget, cell and output. weights [4, units, depth], recurrent [4, units, units], bias [4,
        units]; scales: of weights and recurrent. states: hidden and cell state; default: new variable tensors.
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
        if states is None:
            hidden = self.variable(f"{name}/hidden", (batch, units), x.dtype, *(out or ()))
            cell_type = ("int16", cell_scale) if x.scale else (x.dtype, None)
            states = hidden, self.variable(f"{name}/cell", (batch, units), *cell_type)
        hidden, cell = states
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

    def rnn(
        self,
        x: Tensor,
        weights: Array,
        recurrent: Array,
        bias: Array,
        *,
        activation: str = "tanh",
        time_major: bool = False,
        state: Tensor | None = None,
        name: str = "rnn",
    ) -> Tensor:
        """UNIDIRECTIONAL_SEQUENCE_RNN.

        weights [units, depth], recurrent [units, units], bias [units].
        """
        numbers = {kind: number for number, kind in ACTIVATIONS.items()}
        fields = {"timeMajor": time_major, "fusedActivationFunction": numbers[activation]}
        inputs, output = self._recurrent(x, (weights, recurrent, bias), state, name, time_major=time_major)
        self.operator(RNN, inputs, [output], "SequenceRNNOptions", fields)
        return output

    def gru(
        self,
        x: Tensor,
        weights: Array,
        recurrent: Array,
        bias: Array,
        *,
        reset_after: bool = True,
        time_major: bool = False,
        state: Tensor | None = None,
        name: str = "gru",
    ) -> Tensor:
        """GRU of ONNX. weights [3, units, depth], recurrent [3, units, units], bias [2, 3, units].

        The gates are update, reset and new. bias[0] belongs to weights, bias[1] to recurrent.
        """
        from flatbuffers import flexbuffers

        options = bytes(flexbuffers.Dumps({"reset_after": reset_after, "time_major": time_major}))
        inputs, output = self._recurrent(x, (weights, recurrent, bias), state, name, time_major=time_major)
        self.operator(GRU, inputs, [output], custom=options)
        return output

    def _recurrent(
        self, x: Tensor, arrays: tuple[Array, Array, Array], state: Tensor | None, name: str, *, time_major: bool
    ) -> tuple[list[Tensor], Tensor]:
        """Return the inputs of a layer with one state, and its result."""
        units = arrays[1].shape[-1]
        roles = ("weights", "recurrent", "bias")
        constants = [self.constant(f"{name}/{role}", array) for role, array in zip(roles, arrays, strict=True)]
        batch = x.shape[1 if time_major else 0]
        state = state or self.variable(f"{name}/hidden", (batch, units), x.dtype)
        return [x, *constants, state], self.tensor(name, (*x.shape[:2], units), x.dtype)
