"""The instructions of a linked firmware, read with the objdump of its toolchain."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stages.backends.targets.spec import Target
from stages.backends.targets.timing import decoder
from stages.backends.toolchain.compiler import binutil, run_command
from stages.support.tool import Tool

# "    1c4:\tf04f 0300 \tmov.w\tr3, #0 @ ..."; of RISC-V the bytes are one number.
_LINE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f]{4}(?: [0-9a-f]{4})*|[0-9a-f]{8}) *\t([^\t]+)(?:\t(.*))?$")
_SYMBOL = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_COMMENT = re.compile(r"\s+[@#;] .*$|\s*<[^>]*>")


@dataclass(frozen=True)
class Line:
    """An instruction as text, without address and bytes; `function` is the last symbol."""

    address: int
    size: int
    mnemonic: str
    operands: str
    function: str


def disassembler(target: Target) -> Tool:
    """Return the objdump of the target's toolchain."""
    packages = target.compiler.packages
    install = f"apt-get install {' '.join(packages)}" if packages else ""
    return Tool("objdump", command=binutil(target, "objdump"), install=install)


def disassemble(elf: Path, target: Target) -> Iterator[Line]:
    """Yield the instructions of all code sections by address. Data among them is skipped.

    Raises StageError when objdump fails.
    """
    assert target.timing_model is not None
    decoding = decoder(target.timing_model.instructions)
    options: tuple[str, ...] = decoding.objdump_options(target.isa)
    function = ""
    for text in run_command([binutil(target, "objdump"), "-d", *options, str(elf)], "objdump").splitlines():
        if symbol := _SYMBOL.match(text):
            function = symbol[2]
        elif match := _LINE.match(text):
            digits = match[2].replace(" ", "")
            mnemonic, operands = match[3].strip(), _COMMENT.sub("", match[4] or "").strip()
            if mnemonic.startswith("."):
                mnemonic, operands = decoding.declared(int(digits, 16), target.extensions)
            if mnemonic:
                yield Line(int(match[1], 16), len(digits) // 2, mnemonic, operands, function)
