"""RISC-V vectors in ISA strings: `rv32imac_zve32x_zvl256b`, `rv64gcv`."""

import re
from collections.abc import Iterable

_MINIMUM = re.compile(r"zvl(\d+)b")
_SUBSET = re.compile(r"zve(32|64)[xfd]")


def has_vector(isa: str, extensions: Iterable[str] = ()) -> bool:
    """Return whether a core has RISC-V vectors.

    Reads its ISA string and its extensions, such as `rv32imc_zve32x` or `v`. The compiler's macros do not show it:
    files may be compiled without the extension.
    """
    return isa.startswith("rv") and _register_bits((*_letters(isa), *extensions)) > 0


def vector_bits(isa: str) -> int:
    """Return the VLEN that an ISA string guarantees, in bits; 0 without vectors.

    Spike has exactly this VLEN.
    """
    names = _letters(isa)
    if not (bits := _register_bits(names)):
        return 0
    return max([bits, *(int(minimum[1]) for name in names if (minimum := _MINIMUM.fullmatch(name)))])


def _letters(isa: str) -> tuple[str, ...]:
    """Return the extensions of an ISA string: letters of its first part, and other parts."""
    base, *others = isa.lower().split("_")
    return (*base.removeprefix("rv"), *others)


def _register_bits(names: Iterable[str]) -> int:
    subsets = (128 if name == "v" else int(match[1]) if (match := _SUBSET.fullmatch(name)) else 0 for name in names)
    return max(subsets, default=0)
