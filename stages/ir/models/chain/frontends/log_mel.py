"""Log-mel spectrum, `frontend: {kind: log_mel}`: librosa's melspectrogram, power_to_db."""

from __future__ import annotations

from typing import Literal

from stages.ir.models.chain.frontends.mel import MelFrontend


class LogMel(MelFrontend):
    """Options of log_mel: those of MelFrontend. A frame has `mels` features."""

    kind: Literal["log_mel"] = "log_mel"

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        return self.mels
