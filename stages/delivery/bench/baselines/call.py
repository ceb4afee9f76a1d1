"""C code that calls a function of a baseline library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stages.support.lazy import np, npt

_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")


@dataclass(frozen=True)
class Call:
    """C statements that compute one network.

    data     arrays by name; the C code uses pointers with these names
    before   declarations and statements that are not counted; may use `scratch`, a buffer of SCRATCH bytes
    counted  the statement whose instructions are counted; sets `status`, 0 on success
    """

    data: Mapping[str, npt.NDArray[np.generic]]
    before: Sequence[str] = field(default=())
    counted: str = ""

    def functions(self, prefix: str) -> set[str]:
        """Return the names of the called functions that begin with `prefix`."""
        return {
            name for line in (*self.before, self.counted) for name in _CALLED.findall(line) if name.startswith(prefix)
        }
