"""Damage to a file that knows nothing of its format: cuts, flipped bits, runs of bytes moved, zeroed or repeated."""

from __future__ import annotations

from collections.abc import Callable
from random import Random


def cut(rng: Random, data: bytearray) -> None:
    """Keep only a beginning, most often nearly all or nearly nothing."""
    size = len(data)
    keep = rng.choice([rng.randrange(size + 1), rng.randrange(min(size, 64) + 1), size - rng.randrange(min(size, 64))])
    del data[keep:]


def flip_bits(rng: Random, data: bytearray) -> None:
    """Some bits, anywhere or in the first and last kilobyte, where tables and their offsets lie."""
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        data[_position(rng, data)] ^= 1 << rng.randrange(8)


def set_bytes(rng: Random, data: bytearray) -> None:
    """Some bytes to values at the ends."""
    for _ in range(rng.choice([1, 1, 4])):
        data[_position(rng, data)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])


def set_word(rng: Random, data: bytearray) -> None:
    """An aligned 32-bit word, as offsets, lengths and indices are, to a value that points somewhere else."""
    position = _position(rng, data) & ~3
    value = rng.choice([0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data), len(data) - 4, rng.randrange(2**16)])
    data[position : position + 4] = value.to_bytes(4, "little")


def zero_run(rng: Random, data: bytearray) -> None:
    """A run of zeros."""
    start, size = _position(rng, data), rng.choice([2, 4, 16, 256])
    data[start : start + size] = bytes(len(data[start : start + size]))


def repeat_run(rng: Random, data: bytearray) -> None:
    """A piece of the file twice; what follows moves."""
    start, size = _position(rng, data), rng.choice([1, 4, 16, 256])
    data[start:start] = data[start : start + size]


def drop_run(rng: Random, data: bytearray) -> None:
    """A piece left out; what follows moves."""
    start = _position(rng, data)
    del data[start : start + rng.choice([1, 4, 16, 256])]


def append(rng: Random, data: bytearray) -> None:
    """More after the end."""
    data += rng.randbytes(rng.choice([1, 4, 1000]))


MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (
    cut, flip_bits, flip_bits, set_bytes, set_word, set_word, zero_run, repeat_run, drop_run, append,
)  # fmt: skip


def damage(rng: Random, data: bytes) -> tuple[str, bytes]:
    """The data after one of MUTATIONS, and its name."""
    changed = bytearray(data) or bytearray(b"\0")
    mutation = rng.choice(MUTATIONS)
    mutation(rng, changed)
    return mutation.__name__, bytes(changed)


def _position(rng: Random, data: bytearray) -> int:
    size = len(data)
    edge = min(size, 1024)
    return rng.choice([rng.randrange(size), rng.randrange(edge), size - 1 - rng.randrange(edge)])
