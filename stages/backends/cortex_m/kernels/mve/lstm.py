"""LSTM on int8."""

from stages.backends.kernels.lstm import Lstm8
from stages.backends.targets.spec import Target


class MveLstm(Lstm8):
    """LSTM in vectors: sixteen elements of a row, four gates, eight cells."""

    name = "mve.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "mve_lstm_s8"
    prices = (0.18, 190.0)

    def chunk(self, target: Target) -> int:
        return 16
