"""Damage to a file that knows nothing of its format: cuts, flipped bits, runs of bytes moved, zeroed or repeated."""

from collections.abc import Callable
from random import Random


def cut(rng: Random, data: bytearray) -> None:
    """Keep only a beginning, most often nearly all or nearly nothing."""
    size = len(data)
    edge = min(size, 64)
    del data[rng.choice([rng.randrange(size + 1), rng.randrange(edge + 1), size - rng.randrange(edge)]) :]


def flip_bits(rng: Random, data: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        data[_position(rng, data)] ^= 1 << rng.randrange(8)


def set_word(rng: Random, data: bytearray) -> None:
    """An aligned word, as offsets, lengths and indices are, to a value that points somewhere else; or a byte."""
    position = _position(rng, data) & ~3
    value = rng.choice([0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data), len(data) - 4, rng.randrange(2**16)])
    size = rng.choice([1, 4])
    data[position : position + size] = (value & (256**size - 1)).to_bytes(size, "little")


def change_run(rng: Random, data: bytearray) -> None:
    """A piece of zeros, twice or left out; what follows moves."""
    start = _position(rng, data)
    run = data[start : start + rng.choice([1, 4, 16, 256])]
    data[start : start + len(run)] = rng.choice([bytes(len(run)), run + run, b""])


def append(rng: Random, data: bytearray) -> None:
    data += rng.randbytes(rng.choice([1, 4, 1000]))


MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (
    *(cut, flip_bits, flip_bits, set_word, set_word, set_word, change_run, change_run, change_run, append),
)


def damage(rng: Random, data: bytes) -> tuple[str, bytes]:
    """The data after one of MUTATIONS, and its name."""
    changed = bytearray(data) or bytearray(b"\0")
    mutation = rng.choice(MUTATIONS)
    mutation(rng, changed)
    return mutation.__name__, bytes(changed)


def _position(rng: Random, data: bytearray) -> int:
    """Anywhere, or in the first or last kilobyte, where tables and their offsets lie."""
    size = len(data)
    edge = min(size, 1024)
    return rng.choice([rng.randrange(size), rng.randrange(edge), size - 1 - rng.randrange(edge)])
