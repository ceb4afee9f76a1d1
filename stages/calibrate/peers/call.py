"""A call of a peer's function, in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Call:
    """What computes one network. All names below are in scope of its C.

    data     arrays by name: pointers to them
    before   declarations and statements that are not counted; `scratch` is memory, SCRATCH its bytes
    counted  the statement whose instructions are counted; it sets `status`, 0 when all is well
    """

    data: Mapping[str, NDArray[np.generic]]
    before: Sequence[str] = field(default=())
    counted: str = ""
