"""Firmline's operators of audio features."""

import numpy as np

from stages.ir.operators.log_mel import MelFeatures, log_mel_of
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter


def log_mel(operator: Operator, writer: GraphWriter) -> None:
    """CUSTOM:FirmlineLogMel."""
    roles = ("window", "edges", "ramps", "bias", "offset")
    constants = {role: operator.constant_at(position) for position, role in enumerate(roles, 1)}
    present = {role: values for role, values in constants.items() if values is not None}
    writer.layer(log_mel_of(operator.flexbuffer), [operator.tensor_at(0)], operator.outputs[0], present)


def mel_features(operator: Operator, writer: GraphWriter) -> None:
    """CUSTOM:FirmlineMelFeatures."""
    out = operator.outputs[0]
    limits = np.iinfo(out.dtype)
    constants = {role: operator.known(position) for position, role in enumerate(("weights", "bias", "right_shift"), 1)}
    layer = MelFeatures(low=int(limits.min), high=int(limits.max))
    writer.layer(layer, [operator.tensor_at(0)], out, constants)


PATTERNS = {"CUSTOM:FirmlineLogMel": log_mel, "CUSTOM:FirmlineMelFeatures": mel_features}
