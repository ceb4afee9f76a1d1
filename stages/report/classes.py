"""Names of classes, for the elements of the network's first output."""

from __future__ import annotations

from collections.abc import Sequence

from stages.base import StageError


def check_classes(classes: Sequence[str], elements: int) -> None:
    """Raises StageError for names that are not as many as the output's elements; none are no names."""
    if classes and len(classes) != elements:
        message = f"{len(classes)} names of classes; the network's first output has {elements:,} elements"
        raise StageError(message, at=("stages", "report", "classes"))
