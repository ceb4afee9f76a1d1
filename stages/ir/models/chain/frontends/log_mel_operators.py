"""Build the TFLite file of log_mel."""

from __future__ import annotations

from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.log_mel import LogMel
from stages.ir.models.chain.frontends.mel_operators import mel_file


def build(options: LogMel, features: Features) -> bytes:
    """Return the file, as build_frontend."""
    return mel_file(options, None, features)
