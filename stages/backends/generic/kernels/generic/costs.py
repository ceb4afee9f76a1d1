"""Costs of the portable kernels on an architecture family, in instructions.

The figures are for cores of 32 and 64 bits. A family whose compiler or C library differs has its own in
`stages/backends/<family>/generic_costs.py`, as `COSTS`: one `GenericCosts` for each word size.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from stages.backends.targets.spec import Target

_BACKENDS = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class ProductCosts:
    """Instructions of gemm.c and im2col.c, fitted to counts.

    product   per product of a panel if `rows` rows are computed at once; `single` for one row
    left      for one product of a column that fills no panel
    output    to requantize and store an output
    row       overhead of a row of a group; `panel` of `rows` rows of a panel
    run       for a run of bytes that is gathered, `byte` for each of its bytes, `flipped` for one of uint8
    plane     for a row of a window in a plane, `element` for each of its elements
    tile      for two calls of functions
    """

    rows: int
    product: float
    single: float
    left: float
    output: float
    row: float
    panel: float
    run: float
    byte: float
    flipped: float
    plane: float
    element: float
    tile: float


@dataclass(frozen=True)
class GenericCosts:
    """All figures of a core.

    copied_byte     for a byte that memcpy copies
    batch_product   for one product of BATCH_MATMUL
    deepest_of_four largest depth of a convolution whose windows are gathered for four pixels at once; two for deeper
    """

    products: ProductCosts
    copied_byte: float = 0.5
    batch_product: float = 3.5
    deepest_of_four: int = 512


_COSTS = {
    32: GenericCosts(ProductCosts(2, 2.2, 2.5, 4.9, 54.0, 31.0, 0.0, 38.0, 1.7, 10.2, 45.0, 13.1, 90.0)),
    64: GenericCosts(ProductCosts(2, 1.4, 2.5, 5.9, 40.0, 24.0, 0.0, 48.0, 0.6, 10.7, 30.0, 15.0, 93.0)),
}


def costs_of(target: Target) -> GenericCosts:
    """Return the figures of the target's family and word size."""
    return _family_costs(target.family)[target.word_bits]


@cache
def _family_costs(family: str) -> dict[int, GenericCosts]:
    if not (_BACKENDS / family / "generic_costs.py").is_file():
        return _COSTS
    own: dict[int, GenericCosts] = import_module(f"stages.backends.{family}.generic_costs").COSTS
    return own
