"""A call of a peer's function, in C."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")


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

    def functions(self, prefix: str) -> set[str]:
        """The functions of the library, whose names begin with `prefix`, that it calls."""
        return {
            name for line in (*self.before, self.counted) for name in _CALLED.findall(line) if name.startswith(prefix)
        }
