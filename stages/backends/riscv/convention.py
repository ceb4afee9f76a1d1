"""The calling convention of RISC-V, for generated assembly of RV32 and RV64."""

from collections.abc import Sequence

from stages.backends.tiles.program import Convention, RegisterClass

_X = (*(f"a{i}" for i in range(8)), *(f"t{i}" for i in range(7)), *(f"s{i}" for i in range(12)))
_ARGUMENTS = _X[:8]
_SAVED = frozenset(_X[15:])
_STORES = frozenset({"sb", "sh", "sw", "sd", "SAVE", "vse8.v", "vse16.v", "vse32.v"})


def _results(mnemonic: str) -> int:
    return 0 if mnemonic in _STORES or mnemonic.startswith("b") else 1


_SAVE, _RESTORE = "SAVE {register}, {offset}(sp)", "RESTORE {register}, {offset}(sp)"


def _frame(saved: Sequence[str], words: int, line: str) -> tuple[int, list[str]]:
    """Return the bytes of a frame, a multiple of 16, and `line` for each saved register."""
    lines = [line.format(register=name, offset=words + 8 * i) for i, name in enumerate(saved)]
    return -(-(words + 8 * len(saved)) // 16) * 16, lines


def _enter(saved: Sequence[str], words: int) -> list[str]:
    frame, lines = _frame(saved, words, _SAVE)
    return [*([f"addi sp, sp, {-frame}"] if frame else []), *lines]


def _leave(saved: Sequence[str], words: int) -> list[str]:
    frame, lines = _frame(saved, words, _RESTORE)
    return [*lines, *([f"addi sp, sp, {frame}"] if frame else []), "ret"]


RISCV = Convention(
    {"x": RegisterClass(_X, _SAVED), "v": RegisterClass(tuple(f"v{i}" for i in range(32)))},
    _ARGUMENTS,
    _results,
    _enter,
    _leave,
    preamble=(
        "#if __riscv_xlen == 64",
        "#define SAVE sd",
        "#define RESTORE ld",
        "#define SHIFT_LEFT sllw",
        "#else",
        "#define SAVE sw",
        "#define RESTORE lw",
        "#define SHIFT_LEFT sll",
        "#endif",
    ),
    save=_SAVE,
    restore=_RESTORE,
)
