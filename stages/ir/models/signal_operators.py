"""Find models with TFLM's signal operators, whose reference is TFLM's interpreter.

Planning imports this module, so it has no heavy imports.
"""

import mmap
import re
from pathlib import Path

from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.resolve import local_file
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import OpModel, is_onnx
from stages.support.tool import Tool

CODES = (
    "SignalDelay",
    "SignalEnergy",
    "SignalFftAutoScale",
    "SignalFilterBank",
    "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot",
    "SignalFramer",
    "SignalIrfft",
    "SignalOverlapAdd",
    "SignalPCAN",
    "SignalRfft",
    "SignalStacker",
    "SignalWindow",
)
TFLM = Tool(
    "TFLM's interpreter",
    package="tflite-micro",
    group="audio",
    platform="linux x86_64",
    install="TFLM verifies its signal operators. Run the recipe on Linux on x86-64.",
)
# A text of a flatbuffer: its length, its bytes and a zero.
_CODE = re.compile(b"|".join(re.escape(len(code).to_bytes(4, "little") + code.encode() + b"\0") for code in CODES))


def has_signal_operators(model: ModelSource, root: Path) -> bool:
    """Whether a recipe's model has signal operators.

    False for a file that is missing or unreadable.

    root  the project's folder
    """
    if isinstance(model, ChainModel):
        return model.frontend is not None or any(has_signal_operators(part, root) for part in model.networks.values())
    if isinstance(model, OpModel):
        return model.op.startswith("signal_")
    path = None if is_onnx(model) else local_file(model, root)
    if path is None:
        return False
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _CODE.search(data) is not None
    except (OSError, ValueError):  # ValueError: an empty file
        return False
