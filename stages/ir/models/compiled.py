"""TFLite files that a compiler made for one accelerator: their layers are machine code in custom operators."""

from __future__ import annotations

from collections.abc import Iterable

from stages.ir.models.other_files import FILE
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError

# What the code of such a custom operator begins with, and what wrote it.
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
    """Raise StageError for a file, called `name`, with the code of a custom operator that such a compiler wrote."""
    for code in codes:
        compiler = next((what for start, what in _COMPILERS.items() if code.startswith(start)), "")
        if compiler:
            raise StageError(
                f"{name} was compiled by {compiler} (custom operator {escape.quoted(code)})",
                hint="Its layers are that machine's code. Give the .tflite file from before that compilation.",
                at=FILE,
            )
