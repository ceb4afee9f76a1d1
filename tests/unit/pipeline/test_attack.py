"""A few kills and corruptions with each run of the tests; attack.py does as many as one has patience for."""

from __future__ import annotations

from pathlib import Path

from tests.unit.pipeline.attack import attack


def test_attack(tmp_path: Path) -> None:
    classes = attack(tmp_path, kills=3, corruptions=8, seed=1)
    assert classes.total() == 11
