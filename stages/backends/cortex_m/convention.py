"""The calling convention of Thumb-2 with MVE, for generated assembly.

Arguments on the stack are at `[sp, #ARGUMENTS]`, `[sp, #ARGUMENTS + 4]`, ...
"""

from collections.abc import Sequence

from stages.backends.tiles.program import Convention, RegisterClass

AFTER = "[{base}], #{offset}"  # the form of operands that increment their base
_R = (*(f"r{i}" for i in range(13)), "lr")
_ODD_FIRST = (*_R[1::2][:-1], *_R[0::2], "lr")  # MVE adds up in even registers
_Q = tuple(f"q{i}" for i in range(8))


def _saved(saved: Sequence[str], words: int) -> tuple[str, str, int, int]:
    """Return the saved general and vector registers, their bytes, and those of the frame."""
    general = [name for name in _R if name in saved]
    doubles = 2 * (len(saved) - len(general))
    size = 4 * len(general) + 4 + 8 * doubles
    return ", ".join(general), f"d8-d{7 + doubles}" if doubles else "", size, words + (size + words) % 8


def _enter(saved: Sequence[str], words: int) -> list[str]:
    general, vectors, size, frame = _saved(saved, words)
    lines = [f".set ARGUMENTS, {size + frame}", f"push {{{general}, lr}}"]
    return lines + [f"vpush {{{vectors}}}"] * bool(vectors) + [f"sub sp, sp, #{frame}"] * bool(frame)


def _leave(saved: Sequence[str], words: int) -> list[str]:
    general, vectors, _, frame = _saved(saved, words)
    lines = [f"add sp, sp, #{frame}"] * bool(frame) + [f"vpop {{{vectors}}}"] * bool(vectors)
    return [*lines, f"pop {{{general}, pc}}"]


def _results(mnemonic: str) -> int:
    if mnemonic.startswith(("str", "vstr", "cmp", "vctp", "b", "cb", "le")):
        return 0
    return 2 if mnemonic == "ldrd" else 1


THUMB = Convention(
    {
        "x": RegisterClass(_ODD_FIRST, frozenset(_R[4:12])),
        "even": RegisterClass((*_R[0::2], "lr")),
        "lr": RegisterClass(("lr",)),
        "v": RegisterClass(_Q, frozenset(_Q[4:])),
    },
    _R[:4],
    _results,
    _enter,
    _leave,
    preamble=("    .syntax unified", "    .thumb"),
    save="str {register}, [sp, #{offset}]",
    restore="ldr {register}, [sp, #{offset}]",
    address="[{base}, #{offset}]",
    word_bytes=4,
)
