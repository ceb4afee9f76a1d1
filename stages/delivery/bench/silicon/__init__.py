"""Published programs that `doit bench suite=silicon` compiles, runs and compares with measurements on silicon.

The programs are not part of Firmline: the user has checked them out. One module per program generates C that runs a
row of silicon.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping

from stages.delivery.bench.silicon import cmsis_nn, tinymaix
from stages.delivery.bench.silicon.program import PublishedCode

#: By the name in `code:` of a row.
PUBLISHED: Mapping[str, PublishedCode] = {
    "cmsis-nn": PublishedCode("Include/arm_nnfunctions.h", ("cortex_m",), cmsis_nn.program),
    "tinymaix": PublishedCode("**/tinymaix.h", ("cortex_m", "riscv", "aarch64"), tinymaix.program),
}
