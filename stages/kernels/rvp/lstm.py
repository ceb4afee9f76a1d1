"""LSTM on int8."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stages.kernels.lstm import Lstm8

if TYPE_CHECKING:
    from stages.targets.spec import Target


class RvpLstm(Lstm8):
    """A register of a row with SMAQA."""

    name = "rvp.lstm"
    sources = ("lstm.c",)
    headers: ClassVar[tuple[str, ...]] = ("lstm.h",)
    function = "rvp_lstm_s8"
    prices = (0.55, 730.0)

    def chunk(self, target: Target) -> int:
        return target.word_bits // 8
