"""Programs of Embench IoT: the timed part of a folder of src, with the program's check."""

import re
from pathlib import Path

from stages.backends.timing.silicon import Measurement
from stages.base import StageError
from stages.delivery.bench.silicon.program import NotInCheckout, Program, flags_of
from stages.support.messages.wording import did_you_mean

_GCC = re.compile(r"gcc (\d+)", re.IGNORECASE)
# The harness calls `run` twice and counts the second call, so the first one warms up.
_MAIN = """\
#include "support.h"

static int result[1];
#define OUTPUT result
#define OUTPUT_BYTES sizeof result
#define CHECK() (!verify_benchmark(*result))

/* assert() of a program ends in it, and not each C library has one. */
__attribute__((weak)) void _exit(int status)
{
    for (;;)
        ;
}

static void prepare(void)
{
    initialise_benchmark();
}

static int run(void)
{
    *result = benchmark();
    return 0;
}
"""


def program(row: Measurement, folder: Path) -> Program:
    """Return the program that runs a benchmark as often as the row did. Raises StageError."""
    source = folder / "src" / row.run
    if not source.is_dir():
        known = [path.name for path in sorted((folder / "src").iterdir()) if path.is_dir()]
        raise NotInCheckout(f"the checkout has no program src/{row.run}{did_you_mean(row.run, known)}")
    if set(row.arguments) != {"gsf"}:
        raise StageError("a row of Embench should have arguments: {gsf: NUMBER}")
    # Version 0.5 names the factor after the clock, 2.0 has it apart.
    factors = tuple(f"-D{name}={row.arguments['gsf']}" for name in ("GLOBAL_SCALE_FACTOR", "CPU_MHZ"))
    # Both decide from which address GCC reaches a variable. Before GCC 10, -fcommon is the default.
    version = _GCC.search(row.compiler)
    data: tuple[str, ...] = ("-fcommon",) if version is not None and int(version[1]) < 10 else ()
    data += () if "-fdata-sections" in row.compiler else ("-fno-data-sections",)
    flags = (*flags_of(row.compiler), *data, *factors)
    sources = (*sorted(source.glob("*.c")), folder / "support/beebsc.c")
    return Program(sources, (source, folder / "support"), flags, _MAIN, {}, row.compiler)
