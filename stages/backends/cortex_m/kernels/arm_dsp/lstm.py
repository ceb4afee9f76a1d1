"""LSTM on int8."""

from stages.backends.kernels.lstm import Lstm8
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class ArmLstm(Lstm8):
    """LSTM, four elements of a row with SMLAD, from an int16 copy."""

    name = "arm_dsp.lstm"
    estimate_error = 1.25
    sources = ("lstm.c",)
    function = "arm_dsp_lstm_s8"
    wide = 2
    prices = (1.3, 520.0)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if reason := super().why_not_layer(view, target):
            return reason
        if not -32 <= view.op.scale[1] <= -2:
            return f"the output's shift is {view.op.scale[1]}; this kernel takes -32 to -2"
        return "" if self.doubled(view) < 1 << 30 else "four times a sum, shifted to the left, does not fit 32 bits"

    def chunk(self, target: Target) -> int:
        return 4
