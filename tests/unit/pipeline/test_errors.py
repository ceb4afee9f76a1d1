"""Messages and guesses."""

from __future__ import annotations

import errno

import pytest

from pipeline.errors import (
    DiskFullError,
    PipelineError,
    StageFailed,
    StoreError,
    did_you_mean,
    is_disk_full,
    list_known,
)
from stages.base import StageError


def test_hint_is_a_line_of_its_own() -> None:
    assert str(PipelineError("no", hint="do this")) == "no\ndo this"
    assert str(PipelineError("no")) == "no"


def test_stage_failed_is_caught_as_either() -> None:
    with pytest.raises(StageError):
        raise StageFailed("emit", StageError("bad", hint="mend it"))
    assert str(StageFailed("emit", StageError("bad", hint="mend it"))) == "emit: bad\nmend it"
    assert issubclass(StageFailed, PipelineError)
    assert issubclass(DiskFullError, StoreError)


def test_did_you_mean_guesses_only_what_is_near() -> None:
    assert did_you_mean("layuot", ["layout", "emit"]) == "; did you mean 'layout'?"
    assert did_you_mean("zzz", ["layout", "emit"]) == ""
    assert list_known("stages", []) == "known stages: (none)"


def test_disk_full() -> None:
    assert is_disk_full(OSError(errno.ENOSPC, "full"))
    assert is_disk_full(OSError(errno.EDQUOT, "quota"))
    assert not is_disk_full(OSError(errno.EACCES, "no"))
