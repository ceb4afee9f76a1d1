"""Networks of TinyMaix: one of its models, with the options of a row in tm_port.h.

The checkout is TinyMaix's repository, or that of a port with a copy of its files.
"""

import re
from pathlib import Path

from stages.backends.timing.silicon import Argument, Measurement
from stages.base import StageError
from stages.delivery.bench.silicon.program import NotInCheckout, Program, flags_of

_SOURCES = ("tm_layers.c", "tm_layers_O1.c", "tm_model.c")
# The macro in tm_port.h of each argument.
_OPTIONS = {
    "arch": "TM_ARCH",
    "opt": "TM_OPT_LEVEL",
    "fastscale": "TM_FASTSCALE",
    "local_math": "TM_LOCAL_MATH",
    "stat": "TM_ENABLE_STAT",
}
# Argument of rows whose copy of the model is no constant, so that it is in RAM.
_WEIGHTS = "weights"
_ALLOCATED = 131_072
_MAIN = """\
#include "tinymaix.h"
#include "model.h"

static _Alignas(16) uint8_t allocated[{allocated}], buffer[MDL_BUF_LEN + 8192];
static size_t used;
static tm_mdl_t model;
static tm_mat_t in, out;
#define OUTPUT ((void *)out.data)
#define OUTPUT_BYTES ((size_t)out.h * out.w * out.c * sizeof *out.data)

void *tm_allocate(size_t bytes)
{{
    size_t start = (used + 15) / 16 * 16;
    used = start + bytes;
    return used <= sizeof allocated ? allocated + start : NULL;
}}

void tm_release(void *data)
{{
    (void)data;
}}

static tm_err_t each_layer(tm_mdl_t *model, tml_head_t *layer)
{{
    return TM_OK;
}}

static void prepare(void)
{{
    used = 0;
    if (tm_load(&model, mdl_data, buffer, each_layer, &in) != TM_OK)
        board_exit(1);
    fill(in.data, (size_t)in.h * in.w * in.c * sizeof *in.data);
}}

static int run(void)
{{
    return tm_run(&model, &in, &out);
}}
"""


def program(row: Measurement, folder: Path) -> Program:
    """Return the program that runs the row's network once. Raises StageError."""
    model, header = _found(folder, f"{row.run}.h"), _found(folder, "tinymaix.h")
    port = (header.parent / "tm_port.h").read_text(encoding="utf-8", errors="replace")
    options = {name: value for name, value in row.arguments.items() if name != _WEIGHTS}
    for name, value in options.items():
        if name not in _OPTIONS:
            raise StageError(f"TinyMaix has no option {name}; there are {', '.join((*_OPTIONS, _WEIGHTS))}")
        port = _defined(port, _OPTIONS[name], _constant(port, value) if name == "arch" else str(value))
    for name, text in (("tm_malloc(x)", "tm_allocate(x)"), ("tm_free(x)", "tm_release(x)"), ("TM_GET_US()", "0")):
        port = _defined(port, name, text)
    port += "\n#include <stddef.h>\nvoid *tm_allocate(size_t bytes);\nvoid tm_release(void *data);\n"
    # A file includes the tm_port.h beside it first, so all are copied next to the changed one.
    names = {path.name for path in folder.rglob("arch_*.h")} | {"tinymaix.h", *_SOURCES}
    files = {name: _found(folder, name).read_text(encoding="utf-8", errors="replace") for name in sorted(names)}
    declared = "uint8_t" if row.arguments.get(_WEIGHTS) == "ram" else "const uint8_t"
    data = model.read_text(encoding="utf-8", errors="replace").replace("const uint8_t", f"_Alignas(16) {declared}", 1)
    files |= {"tm_port.h": port, "model.h": data}
    main = _MAIN.format(allocated=_ALLOCATED)
    return Program((), (), flags_of(row.compiler), main, files, row.compiler)


def _found(folder: Path, name: str) -> Path:
    """Return the file of this name with the shortest path: ports and examples have copies.

    Raises StageError.
    """
    paths = sorted(folder.rglob(name), key=lambda path: (len(path.parts), path))
    if not paths:
        raise NotInCheckout(f"the checkout has no {name}")
    return paths[0]


def _constant(port: str, arch: Argument) -> str:
    """Return the constant of tm_port.h for an architecture: TM_ARCH_ARM_SIMD for `simd`."""
    names = re.findall(r"^\s*#define\s+TM_ARCH_(\w+)", port, re.MULTILINE)
    matches = [name for name in names if str(arch).upper() in (name, name.rpartition("_")[2])]
    if not matches:
        raise StageError(f"TinyMaix has no architecture {arch}; there are {', '.join(names)}")
    return f"TM_ARCH_{matches[0]}"


def _defined(text: str, name: str, value: str) -> str:
    """Return the header with another value of a macro."""
    changed, count = re.subn(rf"^(\s*#define\s+{re.escape(name)}\s+)\S+", rf"\g<1>{value}", text, flags=re.MULTILINE)
    if not count:
        raise StageError(f"tm_port.h of the checkout does not define {name}")
    return changed
