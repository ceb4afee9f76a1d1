"""Panels of `riscv.gemm` on 32 bits: products are counted once for a group only where no half of a word overflows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from stages.backends.riscv.kernels.riscv.panels import _MOST as MOST
from stages.backends.riscv.kernels.riscv.panels import panels
from stages.backends.riscv.kernels.riscv.rows import GROUP, Rows

ENDS = np.array(list(product((-128, 127), repeat=GROUP)), np.int64)  # sums are largest and smallest at some of these


def groups_of(panel: np.ndarray, words: Rows) -> Iterator[tuple[bool, np.ndarray]]:
    """For each group of a panel whether it is counted once, and its weights [elements, columns]."""
    header, weights = panel[: words.header].view("<u2"), panel[words.header :].reshape(-1, GROUP, words.panel)
    for number, group in enumerate(weights):
        yield bool(header[1 + number // 16] << number % 16 & 0x8000), group


@pytest.mark.parametrize("largest", [32, 64, 100, 128])
@pytest.mark.parametrize("depth", [1, 4, 63, 64, 65, 130])
def test_groups_are_counted_once_where_all_their_sums_fit_halves_of_words(depth: int, largest: int) -> None:
    words = Rows(depth, 32)
    rng = np.random.default_rng(depth * 1000 + largest)
    weights = rng.integers(-largest, largest, (9, depth), endpoint=False).astype(np.int8)
    packed = panels(weights, words).reshape(-1, words.panel_bytes)
    assert len(packed) == 5
    for panel in packed:
        counts = 0
        for once, group in groups_of(panel, words):
            sums = ENDS @ group.astype(np.int64) + MOST
            assert once == bool(((sums >= 0) & (sums < 1 << 16)).all())
            counts += 1 if once else 2
        assert panel[:2].view("<u2")[0] == counts
