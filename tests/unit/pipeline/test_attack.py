"""A few kills and corruptions with each run of the tests; attack.py does as many as one has patience for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.artifacts.store import Store
from tests.unit.pipeline.attack import Broken, attack


def test_attack(tmp_path: Path) -> None:
    classes = attack(tmp_path, kills=3, corruptions=8, seed=1)
    assert classes.total() == 11


def test_attack_notices_a_store_that_believes_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "find", lambda store, key: None)
    path = os.environ["PATH"]
    with pytest.raises(Broken, match="seed 1, corruption 0: Broken no whole artifact of import, emit, compile, report"):
        attack(tmp_path, kills=0, corruptions=1, seed=1)
    assert os.environ["PATH"] == path
