"""Multiplication: bytes into words, halves into words and 64 bits, words into words and 64 bits."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.rvp.fields import (
    Machine,
    Semantics,
    Sources,
    half,
    join,
    part,
    rounded,
    signed,
    word,
)


def dot(signed_a: bool, signed_b: bool) -> Semantics:
    """Rd.W[x] += the four products of the bytes of Rs1.W[x] and Rs2.W[x], overflow discarded."""

    def semantics(m: Machine, s: Sources) -> int:
        def product(i: int) -> int:
            return part(s.rs1, 8, i, is_signed=signed_a) * part(s.rs2, 8, i, is_signed=signed_b)

        return join([word(s.rd, x) + sum(product(4 * x + i) for i in range(4)) for x in range(m.xlen // 32)], 32)

    return semantics


def absolute_differences(accumulate: bool) -> Semantics:
    def semantics(m: Machine, s: Sources) -> int:
        bytes_of = [
            (part(s.rs1, 8, x, is_signed=False), part(s.rs2, 8, x, is_signed=False)) for x in range(m.xlen // 8)
        ]
        return s.rd * accumulate + sum(abs(a - b) for a, b in bytes_of)

    return semantics


Products = Callable[[Sources, int], int]
#: Sums and differences of products of the halves of word x, by the end of an instruction's name.
PRODUCTS: dict[str, Products] = {
    "bb": lambda s, x: half(s.rs1, 2 * x) * half(s.rs2, 2 * x),
    "bt": lambda s, x: half(s.rs1, 2 * x) * half(s.rs2, 2 * x + 1),
    "tt": lambda s, x: half(s.rs1, 2 * x + 1) * half(s.rs2, 2 * x + 1),
    "tb": lambda s, x: half(s.rs1, 2 * x + 1) * half(s.rs2, 2 * x),
    "da": lambda s, x: PRODUCTS["tt"](s, x) + PRODUCTS["bb"](s, x),
    "xda": lambda s, x: PRODUCTS["tb"](s, x) + PRODUCTS["bt"](s, x),
    "ds": lambda s, x: PRODUCTS["tt"](s, x) - PRODUCTS["bb"](s, x),
    "drs": lambda s, x: PRODUCTS["bb"](s, x) - PRODUCTS["tt"](s, x),
    "xds": lambda s, x: PRODUCTS["tb"](s, x) - PRODUCTS["bt"](s, x),
}


def per_word(function: Callable[[Machine, Sources, int], int]) -> Semantics:
    """Rd.W[x] = function(machine, sources, x)."""
    return lambda m, s: join([function(m, s, x) for x in range(m.xlen // 32)], 32)


def _as_it_is(products: Products) -> Callable[[Machine, Sources, int], int]:
    return lambda m, s, x: products(s, x)


def _saturated(products: Products) -> Callable[[Machine, Sources, int], int]:
    return lambda m, s, x: m.q(products(s, x), 32)


def accumulate_q31(products: Products, sign: int) -> Semantics:
    """Rd.W[x] = SAT.Q31(Rd.W[x] + sign * products)."""
    return per_word(lambda m, s, x: m.q(word(s.rd, x) + sign * products(s, x), 32))


def accumulate_64(products: Products, sign: int) -> Semantics:
    """Rd = Rd + sign * the sum of products over all words; 64 bits, overflow ignored."""
    return lambda m, s: s.rd + sign * sum(products(s, x) for x in range(m.xlen // 32))


def halfwords() -> dict[str, Semantics]:
    """16 x 16 bits."""
    table: dict[str, Semantics] = {}
    for end in ("bb", "bt", "tt"):
        products = PRODUCTS[end]
        table[f"sm{end}16"] = per_word(_as_it_is(products))
        table[f"kma{end}"] = accumulate_q31(products, 1)
        table[f"smal{end}"] = accumulate_64(products, 1)
    for cross in ("", "x"):
        sums = PRODUCTS[f"{cross}da"]
        table[f"km{cross}da"] = per_word(_saturated(sums))
        table[f"kma{cross}da"] = accumulate_q31(sums, 1)
        table[f"kms{cross}da"] = accumulate_q31(sums, -1)
        table[f"smal{cross}da"] = accumulate_64(sums, 1)
        table[f"smsl{cross}da"] = accumulate_64(sums, -1)
        for bits in (8, 16):
            table[f"khm{cross}{bits}"] = fractional(bits, crossed=bool(cross))
    for end in ("ds", "drs", "xds"):
        differences = PRODUCTS[end]
        table[f"sm{end}"] = per_word(_as_it_is(differences))
        table[f"kma{end}"] = accumulate_q31(differences, 1)
        table[f"smal{end}"] = accumulate_64(differences, 1)
    table["smal"] = lambda m, s: s.rs1 + sum(half(s.rs2, 2 * x + 1) * half(s.rs2, 2 * x) for x in range(m.xlen // 32))
    return table


def fractional(bits: int, *, crossed: bool) -> Semantics:
    """Q7 or Q15 products; the one of two minima saturates."""

    def semantics(m: Machine, s: Sources) -> int:
        fields = range(m.xlen // bits)
        a = [part(s.rs1, bits, x, is_signed=True) for x in fields]
        b = [part(s.rs2, bits, x ^ crossed, is_signed=True) for x in fields]
        return join([m.q(x * y >> (bits - 1), bits) for x, y in zip(a, b, strict=True)], bits)

    return semantics


def words() -> dict[str, Semantics]:
    """32 x 32 and 32 x 16 bits, keeping the most significant 32 bits. `.u` rounds."""
    table: dict[str, Semantics] = {}
    factors: dict[str, tuple[Products, int]] = {
        "": (lambda s, x: word(s.rs1, x) * word(s.rs2, x), 32),
        "b": (lambda s, x: word(s.rs1, x) * half(s.rs2, 2 * x), 16),
        "t": (lambda s, x: word(s.rs1, x) * half(s.rs2, 2 * x + 1), 16),
    }
    for end, (product, drop) in factors.items():
        for suffix in ("", ".u"):

            def msw(s: Sources, x: int, product: Products = product, drop: int = drop, suffix: str = suffix) -> int:
                return rounded(product(s, x), drop) if suffix else product(s, x) >> drop

            def doubled(
                m: Machine, s: Sources, x: int, product: Products = product, drop: int = drop, suffix: str = suffix
            ) -> int:
                value = product(s, x)
                return m.q(rounded(value, drop - 1) if suffix else value >> (drop - 1), 32)

            def add_doubled(m: Machine, s: Sources, x: int, doubled: Callable[..., int] = doubled) -> int:
                return m.q(word(s.rd, x) + doubled(m, s, x), 32)

            plain = per_word(_as_it_is(msw))
            if end == "":
                table[f"smmul{suffix}"] = plain
                table[f"kwmmul{suffix}"] = per_word(doubled)
                table[f"kmmac{suffix}"] = accumulate_q31(msw, 1)
                table[f"kmmsb{suffix}"] = accumulate_q31(msw, -1)
            else:
                table[f"smmw{end}{suffix}"] = plain
                table[f"kmmw{end}2{suffix}"] = per_word(doubled)
                table[f"kmmaw{end}{suffix}"] = accumulate_q31(msw, 1)
                table[f"kmmaw{end}2{suffix}"] = per_word(add_doubled)
    return table


def word_products(m: Machine, s: Sources, *, is_signed: bool) -> int:
    """The exact sum of Rs1.W[x] * Rs2.W[x]."""
    return sum(word(s.rs1, x, is_signed=is_signed) * word(s.rs2, x, is_signed=is_signed) for x in range(m.xlen // 32))


def accumulate_words(sign: int, *, is_signed: bool, saturating: bool) -> Semantics:
    """Rd = Rd + sign * the sum of word products, in 64 bits."""

    def semantics(m: Machine, s: Sources) -> int:
        total = (signed(s.rd, 64) if is_signed else s.rd) + sign * word_products(m, s, is_signed=is_signed)
        if not saturating:
            return total
        return m.q(total, 64) if is_signed else m.u(total, 64)

    return semantics


def widening(bits: int, *, is_signed: bool, crossed: bool) -> Semantics:
    """Products of the fields of the low word, each twice as wide as its factors."""

    def semantics(m: Machine, s: Sources) -> int:
        fields = range(32 // bits)
        a = [part(s.rs1, bits, x, is_signed=is_signed) for x in fields]
        b = [part(s.rs2, bits, x ^ crossed, is_signed=is_signed) for x in fields]
        return join([x * y for x, y in zip(a, b, strict=True)], 2 * bits)

    return semantics


def wide() -> dict[str, Semantics]:
    """32 x 32 bits with 64-bit results, and widening products of smaller fields."""
    table: dict[str, Semantics] = {
        "smar64": accumulate_words(1, is_signed=True, saturating=False),
        "smsr64": accumulate_words(-1, is_signed=True, saturating=False),
        "umar64": accumulate_words(1, is_signed=False, saturating=False),
        "umsr64": accumulate_words(-1, is_signed=False, saturating=False),
        "kmar64": accumulate_words(1, is_signed=True, saturating=True),
        "kmsr64": accumulate_words(-1, is_signed=True, saturating=True),
        "ukmar64": accumulate_words(1, is_signed=False, saturating=True),
        "ukmsr64": accumulate_words(-1, is_signed=False, saturating=True),
        "mulsr64": lambda m, s: word(s.rs1, 0) * word(s.rs2, 0),
        "mulr64": lambda m, s: word(s.rs1, 0, is_signed=False) * word(s.rs2, 0, is_signed=False),
        "smbt32": lambda m, s: word(s.rs1, 0) * word(s.rs2, 1),
        "smtt32": lambda m, s: word(s.rs1, 1) * word(s.rs2, 1),
        "maddr32": lambda m, s: signed(s.rd + s.rs1 * s.rs2, 32),
        "msubr32": lambda m, s: signed(s.rd - s.rs1 * s.rs2, 32),
    }
    for letter in "su":
        for cross in ("", "x"):
            for bits in (8, 16):
                semantics = widening(bits, is_signed=letter == "s", crossed=bool(cross))
                table[f"{letter}mul{cross}{bits}"] = semantics
    return table


def multiplications() -> dict[str, Semantics]:
    """All of this module by name."""
    dots = {"smaqa": dot(True, True), "smaqa.su": dot(True, False), "umaqa": dot(False, False)}
    differences = {"pbsad": absolute_differences(False), "pbsada": absolute_differences(True)}
    return dots | differences | halfwords() | words() | wide()
