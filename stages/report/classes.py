"""Names of classes, for the elements of the network's first output."""

from collections.abc import Sequence

from stages.base import StageError


def check_classes(classes: Sequence[str], elements: int) -> None:
    """Raise StageError if the number of names differs from the output's elements.

    No names are allowed.
    """
    if classes and len(classes) != elements:
        message = f"{len(classes)} class names; the network's first output has {elements:,} elements"
        raise StageError(message, at=("stages", "report", "classes"))
