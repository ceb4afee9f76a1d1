"""Python model of declared instructions, for tests and the plug-in's self-test.

The functions of a meaning are defined here and, with the same names, in ../spike/plugin/meaning.h.
"""

from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

from stages.backends.riscv.instructions.declaration import Instruction


@dataclass
class _Flag:
    """Whether a saturation changed a value: vxsat.OV."""

    overflowed: bool = False


def bits(value: int, count: int) -> int:
    """Return the low `count` bits, unsigned."""
    return value & ((1 << count) - 1)


def wrap(value: int, count: int) -> int:
    """Return the low `count` bits, signed."""
    low = bits(value, count)
    return low - (1 << count) if low >> (count - 1) else low


def rshr(value: int, amount: int) -> int:
    """Shift right and round halves up."""
    return value if amount == 0 else ((value >> (amount - 1)) + 1) >> 1


def shift(value: int, amount: int) -> int:
    """Shift left, or right for a negative amount."""
    return value << amount if amount >= 0 else value >> -amount


def rshift(value: int, amount: int) -> int:
    """Shift left, or right with rounding for a negative amount."""
    return value << amount if amount >= 0 else rshr(value, -amount)


def clz(value: int, count: int) -> int:
    """Return the number of leading zeros of the low `count` bits."""
    return count - bits(value, count).bit_length()


def cls(value: int, count: int) -> int:
    """Return the number of bits after the sign bit that equal it."""
    return clz(~value if value < 0 else value, count) - 1


def _functions(flag: _Flag) -> dict[str, Any]:
    def clip(value: int, low: int, high: int) -> int:
        clipped = max(low, min(high, value))
        flag.overflowed |= clipped != value
        return clipped

    def lane(count: int, signed: bool) -> Any:
        read = wrap if signed else bits
        return lambda register, index: read(register >> (count * index), count)

    return {
        **{f"s{count}": lane(count, True) for count in (8, 16, 32, 64)},
        **{f"u{count}": lane(count, False) for count in (8, 16, 32, 64)},
        "clip": clip,
        "sat": lambda value, count: clip(value, -(1 << (count - 1)), (1 << (count - 1)) - 1),
        "usat": lambda value, count: clip(value, 0, (1 << count) - 1),
        "select": lambda condition, yes, no: yes if condition else no,
        **{function.__name__: function for function in (bits, wrap, rshr, shift, rshift, clz, cls, min, max, abs)},
    }


@cache
def _compiled(meaning: str) -> CodeType:
    return compile(meaning, "<meaning>", "eval")


def execute(instruction: Instruction, word_bits: int, operands: dict[str, int]) -> tuple[int, bool]:
    """Return the 64-bit result (a pair on RV32, else sign-extended) and whether vxsat is set.

    `operands` has 64-bit values of d, a, b, c and the immediate `n`. Of registers that are not pairs RV32 uses the low
    half. The result is extended only if the register has 32 bits.
    """
    flag = _Flag()
    width = {name: 64 if word_bits == 64 or name in instruction.pairs else 32 for name in "dabc"}
    values = {name: bits(operands.get(name, 0), width[name]) for name in "dabc"}
    size = instruction.lanes
    result_bits = width["d"] if size < 64 else 64
    names = {**_functions(flag), **values, "n": operands.get("n", 0), "xlen": word_bits}
    result = 0
    for index in range(result_bits // size):
        value = eval(_compiled(instruction.meaning), {"__builtins__": {}}, {**names, "i": index})
        result |= bits(int(value), size) << (size * index)
    return bits(result, width["d"]), flag.overflowed
