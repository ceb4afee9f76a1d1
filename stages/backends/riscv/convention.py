"""The calling convention of RISC-V, for generated assembly of RV32 and RV64."""

from stages.backends.tiles.program import Convention, RegisterClass

_X = (*(f"a{i}" for i in range(8)), *(f"t{i}" for i in range(7)), *(f"s{i}" for i in range(12)))
_ARGUMENTS = _X[:8]
_SAVED = frozenset(_X[15:])
_STORES = frozenset({"sb", "sh", "sw", "sd", "SAVE", "vse8.v", "vse16.v", "vse32.v"})


def reads_first(mnemonic: str) -> bool:
    """Return whether an instruction reads its first operand and does not write it."""
    return mnemonic in _STORES or mnemonic.startswith("b")


RISCV = Convention(
    {"x": RegisterClass(_X, _SAVED), "v": RegisterClass(tuple(f"v{i}" for i in range(32)))},
    _ARGUMENTS,
    reads_first,
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
    save="SAVE {register}, {offset}(sp)",
    restore="RESTORE {register}, {offset}(sp)",
    adjust="addi sp, sp, {bytes}",
)
