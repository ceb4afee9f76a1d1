"""Test a new plug-in with a loop of known length on QEMU, without a cross compiler."""

import struct
from pathlib import Path

from stages.support.messages.stage_error import StageError
from stages.support.system.programs import run_tool
from stages.support.system.scratch import temporary_folder

_TURNS = 100
#: Before STOP the move; between GO and the second STOP two instructions a turn.
_EXPECTED = 1 + 2 * _TURNS

# movs r0,#100 | dbg #0 | dbg #1 | 1: subs r0,#1 | bne 1b | dbg #0
# movw r1,#0x26 | movt r1,#2 | movs r0,#0x18 | bkpt 0xab: semihosting's SYS_EXIT, application exit
_THUMB = (0x2064, 0xF3AF, 0x80F0, 0xF3AF, 0x80F1, 0x3801, 0xD1FD, 0xF3AF, 0x80F0)
_THUMB_EXIT = (0xF240, 0x0126, 0xF2C0, 0x0102, 0x2018, 0xBEAB)
_THUMB_START = 0x40  # after the vector table

# mov w0,#100 | hint #64 | hint #65 | 1: subs w0,w0,#1 | b.ne 1b | hint #64 | mov x0,#0 | mov x8,#93 | svc #0
_A64 = (0x52800C80, 0xD503281F, 0xD503283F, 0x71000400, 0x54FFFFE1, 0xD503281F, 0xD2800000, 0xD2800BA8, 0xD4000001)
_A64_BASE = 0x400000


def self_test(plugin: Path, emulator: str) -> None:
    """Raise StageError if `emulator` with `plugin` counts wrongly or does not start."""
    with temporary_folder("qemu") as folder:
        user_mode = "-system-" not in emulator
        elf = folder / "test.elf"
        elf.write_bytes(_a64_elf() if user_mode else _thumb_elf())
        elf.chmod(0o755)
        machine = [] if user_mode else ["-M", "mps2-an386", "-nographic", "-semihosting", "-kernel"]
        command = [emulator, "-plugin", f"file={plugin}".replace(",", ",,"), *machine, elf.name]
        finished = run_tool(command, cwd=folder, timeout=30)
        counter = folder / "counter.bin"
        content = counter.read_bytes() if counter.exists() else b""
    if finished.returncode != 0 or len(content) != 16:
        problem = finished.stderr.strip()[-200:] or f"{emulator} ended with status {finished.returncode}"
        raise StageError(f"QEMU's counting plug-in fails its self-test: {problem}")
    (count,) = struct.unpack_from("<Q", content)
    if count != _EXPECTED:
        raise StageError(f"QEMU's counting plug-in fails its self-test: counted {count} instructions, not {_EXPECTED}")


def _thumb_elf() -> bytes:
    """Return a Cortex-M image at address 0: initial stack pointer, reset vector, code."""
    vectors = struct.pack("<2I", 0x20001000, _THUMB_START | 1).ljust(_THUMB_START, b"\0")
    payload = vectors + struct.pack(f"<{len(_THUMB) + len(_THUMB_EXIT)}H", *_THUMB, *_THUMB_EXIT)
    header, program, arm, base = 52, 32, 40, 0
    ident = b"\x7fELF" + bytes((1, 1, 1)) + bytes(9)
    eabi_version_5 = 0x05000000
    return (
        ident
        + struct.pack("<HHIIIII", 2, arm, 1, _THUMB_START | 1, header, 0, eabi_version_5)
        + struct.pack("<HHHHHH", header, program, 1, 0, 0, 0)
        + struct.pack("<IIIIIIII", 1, header + program, base, base, len(payload), len(payload), 5, 4)
        + payload
    )


def _a64_elf() -> bytes:
    """Return a static Linux program: one segment with the headers and the code."""
    header, program, aarch64 = 64, 56, 183
    code_at = header + program
    size = code_at + 4 * len(_A64)
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    return (
        ident
        + struct.pack("<HHIQQQIHHHHHH", 2, aarch64, 1, _A64_BASE + code_at, header, 0, 0, header, program, 1, 0, 0, 0)
        + struct.pack("<IIQQQQQQ", 1, 5, 0, _A64_BASE, _A64_BASE, size, size, 0x1000)
        + struct.pack(f"<{len(_A64)}I", *_A64)
    )
