"""Messages and guesses."""

from __future__ import annotations

import pytest

from pipeline.errors import (
    DiskFullError,
    PipelineError,
    StageFailed,
    StoreError,
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


def test_list_of_what_is_known() -> None:
    assert list_known("stages", []) == "known stages: (none)"
