"""Published programs that `doit bench suite=silicon` compares with silicon.

The programs are not part of Firmline: the user has checked them out. One module per program generates C that runs a
row of silicon.yaml.
"""

from collections.abc import Mapping

from stages.delivery.bench.silicon import cmsis_nn, coremark, embench, tinymaix
from stages.delivery.bench.silicon.program import PublishedCode

#: By the name in `code:` of a row.
PUBLISHED: Mapping[str, PublishedCode] = {
    "cmsis-nn": PublishedCode("Include/arm_nnfunctions.h", ("cortex_m",), cmsis_nn.program),
    "coremark": PublishedCode("coremark.h", ("cortex_m", "riscv", "aarch64"), coremark.program),
    "embench": PublishedCode("sconstruct.py", ("cortex_m", "riscv", "aarch64"), embench.program),
    "embench-0.5": PublishedCode("support/dummy-libc.c", ("cortex_m", "riscv", "aarch64"), embench.program),
    "tinymaix": PublishedCode("**/tinymaix.h", ("cortex_m", "riscv", "aarch64"), tinymaix.program),
}
