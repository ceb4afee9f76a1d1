"""LSTM on int8."""

from typing import Any

from stages.backends.kernels.lstm import Lstm8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class RvpLstm(Lstm8):
    """LSTM with one register of a row per SMAQA; on RV64 the functions of two cells at a time."""

    name = "rvp.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "rvp_lstm_s8"

    def chunk(self, target: Target) -> int:
        return target.word_bits // 8

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions; RV64 halves those of products, an odd cell count adds a cell."""
        op, chunk, wide = view.op, self.chunk(target), target.word_bits == 64
        steps = view.outputs[0].elements / op.units
        depth, before = (-(-count // chunk) * chunk for count in (op.depth, op.units))
        functions = 405 * (op.units + op.units % 2) if wide else 665 * op.units
        products = 4 * (0.38 if wide else 0.75) * (depth + before) * op.units
        return float(steps * (functions + products + 2 * (op.depth + op.units) + (370 if wide else 250)))
