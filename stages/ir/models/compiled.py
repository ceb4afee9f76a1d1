"""TFLite files that were compiled for an accelerator and contain its machine code."""

from __future__ import annotations

from collections.abc import Iterable

from stages.ir.models.other_files import FILE
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError

# Prefix of the custom operator's code -> compiler that wrote it.
_COMPILERS = {
    "ethos-u": "Arm's Vela, for an Ethos-U NPU",
    "edgetpu-custom-op": "Google's edgetpu_compiler, for an Edge TPU",
    "XC_": "XMOS' xcore optimizer, for an xcore.ai",
    "NeutronGraph": "NXP's Neutron converter, for an eIQ Neutron NPU",
    "DISPATCH_OP": "LiteRT's compiler, for the NPU of a phone",
    "vsi-npu": "VeriSilicon's tools, for a VIP NPU",
    "tidl-": "TI's TIDL tools, for a C7x",
}


def check_not_compiled(codes: Iterable[str], name: str) -> None:
    """Raise StageError if a custom operator of the file is a compiler's machine code.

    name  file in the message
    """
    for code in codes:
        compiler = next((what for start, what in _COMPILERS.items() if code.startswith(start)), "")
        if compiler:
            raise StageError(
                f"{name} was compiled by {compiler} (custom operator {escape.quoted(code)})",
                hint="Its layers are machine code. Use the .tflite file from before that compilation.",
                at=FILE,
            )
