"""Calls of CMSIS-NN's functions with the shapes of a row.

A call is made from the function's prototype in the checkout's headers: each parameter has a value by its name. So
functions of several versions and of forks can be called.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.backends.timing.silicon import Measurement
from stages.base import StageError
from stages.delivery.bench.silicon.program import NotInCheckout, Program, flags_of
from stages.support.messages.wording import did_you_mean

# The library has code for each instruction set, which it selects by the compiler's macros.
_VARIANTS = {
    "mve": (),
    "dsp": ("-U__ARM_FEATURE_MVE",),
    "c": ("-U__ARM_FEATURE_MVE", "-U__ARM_FEATURE_DSP"),
}
_SCRATCH = 131_072
_MACRO = re.compile(r"\bCMSIS_NN_USE_\w+")
_OUTPUTS = ("output_data", "output", "dst")
_PARAMETER = re.compile(r"^(.*?)(\w+)\s*$", re.DOTALL)
_DEFINED = re.compile(r"^(?!#|typedef)[A-Za-z][\w \t*]*?\b(\w+)\s*(?:\(|\[\w*\]\s*=)", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w+")
_MAIN = """\
#include <stdbool.h>
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

static _Alignas(16) uint8_t scratch[{scratch}], sums[{scratch}];
{arrays}
#define OUTPUT {output}
#define OUTPUT_BYTES sizeof {output}

static void prepare(void)
{{
{fills}
}}

static int run(void)
{{
{locals}
    return {call};
}}
"""


def program(row: Measurement, folder: Path) -> Program:
    """Return the program that calls the row's function once. Raises StageError."""
    if row.variant not in _VARIANTS:
        raise StageError(f"cmsis-nn has no variant {row.variant}", hint=f"there are: {', '.join(_VARIANTS)}")
    shape = _Shape(row.run, dict(row.arguments))
    arrays: dict[str, str] = {}
    values, locals_ = [], []
    for kind, name in _parameters(row.run, folder):
        element = kind.replace("const", "").removesuffix("*").strip()
        if name in shape.locals and element.startswith("cmsis_nn_"):
            locals_.append(shape.locals[name])
            values.append(f"&{name}")
        elif name in shape.counts and kind.endswith("*"):
            arrays[name] = f"{element} {name}[{shape.counts[name]}]"
            values.append(name)
        elif name in shape.values:
            values.append(shape.values[name])
        else:
            raise StageError(f"{row.run} has a parameter that no row describes: {kind} {name}")
    if "quant_params" in "".join(locals_):
        arrays |= {name: f"int32_t {name}[{shape.counts[name]}]" for name in ("multiplier", "shift")}
    output = next(name for name in _OUTPUTS if name in arrays)
    main = _MAIN.format(
        scratch=_SCRATCH,
        arrays="\n".join(f"static _Alignas(16) {declaration};" for declaration in arrays.values()),
        output=output,
        fills="\n".join(f"    {line}" for line in _fills(arrays, shape.shift)),
        locals="\n".join(f"    {line}" for line in locals_),
        call=f"{row.run}({', '.join(values)})",
    )
    include = (folder / "Include", folder.parent / "cmsis_core/Include", folder.parent / "Core/Include")
    return Program(
        tuple(_needed(row.run, folder)),
        tuple(path for path in include if path.is_dir()),
        (*_VARIANTS[row.variant], *flags_of(row.compiler), *(f"-D{name}" for name in _MACRO.findall(row.compiler))),
        main,
        compiler=row.compiler,
    )


def _fills(arrays: Mapping[str, str], shift: int) -> Iterator[str]:
    """Yield statements that write random data, with multipliers that keep outputs in range.

    Bias and sums of weights stay 0.
    """
    scales = {"multiplier": "1 << 30", "shift": str(shift)}
    for name, declaration in arrays.items():
        scale = next((value for word, value in scales.items() if word in name), None)
        if scale is not None:
            yield f"for (size_t i = 0; i < sizeof {name} / sizeof *{name}; i++) {name}[i] = {scale};"
        elif name not in _OUTPUTS and declaration.startswith(("int8_t", "int16_t")):
            yield f"fill({name}, sizeof {name});"


def _parameters(function: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield type and name of a function's parameters, from the checkout's headers."""
    declared: set[str] = set()
    for header in sorted((folder / "Include").glob("*.h")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(encoding="utf-8", errors="replace"), flags=re.DOTALL)
        if declaration := re.search(rf"\b{re.escape(function)}\s*\(([^;{{}}]*)\)\s*;", text):
            for parameter in declaration[1].split(","):
                match = _PARAMETER.match(parameter)
                assert match is not None
                yield " ".join(match[1].split()), match[2]
            return
        declared.update(re.findall(r"\b(arm_\w+)\s*\(", text))
    raise StageError(f"the checkout does not declare {function}{did_you_mean(function, declared)}")


def _needed(function: str, folder: Path) -> list[Path]:
    """Return the sources with the function and all that it may call."""
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("Source/*/*.c"))}
    places = {name: path for path, text in texts.items() for name in _DEFINED.findall(text)}
    if function not in places:
        raise NotInCheckout(f"the checkout has no source of {function}")
    needed = [places[function]]
    for path in needed:
        words = set(_WORD.findall(texts[path]))
        needed += sorted({places[word] for word in words & places.keys()} - {*needed})
    return sorted(needed)


class _Shape:
    """Values of parameters by name.

    counts  elements of arrays
    locals  structures
    values  numbers
    """

    def __init__(self, function: str, arguments: dict[str, Any]) -> None:
        self.bits = 16 if "s16" in function else 8
        self.weight_bits = 4 if "s4" in function else 8
        self.counts: dict[str, int] = {}
        self.locals: dict[str, str] = {}
        self.depth = 1
        low, high = -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        offset = 0 if self.bits == 16 else 3
        self.values = {
            **dict.fromkeys(("activation_min", "out_activation_min"), str(low)),
            **dict.fromkeys(("activation_max", "out_activation_max"), str(high)),
            **dict.fromkeys(("lhs_offset", "input_1_offset", "input_2_offset"), str(offset)),
            **dict.fromkeys(("dst_offset", "out_offset"), str(-offset)),
            **dict.fromkeys(("input_1_mult", "input_2_mult", "out_mult", "dst_multiplier"), "1 << 30"),
            **dict.fromkeys(("input_1_shift", "input_2_shift"), "0"),
            "rhs_offset": "0",
            "address_offset": "1",
            "upscale_dims": "NULL",
            "batch_size": "1",
            "left_shift": "15" if self.bits == 16 else "20",
            # Sources do not state it. Rows marked fit agree with all but EQUAL.
            "operation": "ARM_COMPARE_GREATER",
        }
        self.locals["ctx"] = f"const cmsis_nn_context ctx = {{scratch, {_SCRATCH}}};"
        self.locals["weight_sum_ctx"] = f"const cmsis_nn_context weight_sum_ctx = {{sums, {_SCRATCH}}};"
        try:
            if "size" in arguments:
                self._elements(arguments["size"])
            elif "rhs_rows" in arguments:
                self._product(arguments.get("lhs_rows", 1), arguments["columns"], arguments["rhs_rows"])
            else:
                self._window(function, arguments, low, high, offset)
        except KeyError as missing:
            raise StageError(f"{function}: the row's arguments have no {missing}") from None
        product = math.sqrt(self.depth) * 0.58 * (1 << self.weight_bits - 1)
        self.shift = -max(round(math.log2(product)), 0)
        self.values["dst_shift"] = str(self.shift)
        self.values.setdefault("out_shift", str(self.shift))

    def _elements(self, elements: int) -> None:
        dims = f"{{.n = 1, .h = 1, .w = 1, .c = {elements}}}"
        for name in ("input_1_vect", "input_2_vect", "input_1_data", "input_2_data", "output", "output_data"):
            self.counts[name] = elements
        for name in ("input_1_dims", "input_2_dims", "output_dims"):
            self.locals[name] = f"const cmsis_nn_dims {name} = {dims};"
        self.values |= {"block_size": str(elements), "batch_offset": str(elements)}
        # Sources state no shifts. Their signs decide which code runs; rows marked fit say that all are below 0.
        self.values |= {"input_1_shift": "-1", "input_2_shift": "-1", "out_shift": "-8"}

    def _product(self, rows: int, depth: int, columns: int) -> None:
        self.depth = depth
        self.counts = {
            "lhs": rows * depth,
            "rhs": columns * depth,
            "packed_rhs": columns * depth,
            "dst": rows * columns,
            **dict.fromkeys(("bias", "dst_multipliers", "dst_shifts", "kernel_sum", "weight_sum_buf"), columns),
        }
        self.values |= {"lhs_rows": str(rows), "rhs_rows": str(columns), "rhs_cols": str(depth)}
        self.values |= {"row_address_offset": str(columns), "lhs_cols_offset": str(depth)}

    def _window(self, function: str, arguments: Mapping[str, Any], low: int, high: int, offset: int) -> None:
        height, width, channels = arguments["input"]
        kernel = arguments["kernel"]
        stride, padding = ((arguments[name],) * 2 for name in ("stride", "padding"))
        is_depthwise, is_pool = "depthwise" in function, "pool" in function
        out_channels = arguments.get("outputs", channels)
        out_height, out_width = (
            (size + 2 * pad - window) // step + 1
            for size, pad, window, step in zip((height, width), padding, kernel, stride, strict=True)
        )
        self.depth = kernel[0] * kernel[1] * (1 if is_depthwise else channels)
        first, last = (1, out_channels) if is_depthwise else (1, 1) if is_pool else (out_channels, channels)
        dims = {
            "input_dims": (1, height, width, channels),
            "filter_dims": (first, *kernel, last),
            "bias_dims": (1, 1, 1, out_channels),
            "output_dims": (1, out_height, out_width, out_channels),
        }
        for name, (n, h, w, c) in dims.items():
            self.locals[name] = f"const cmsis_nn_dims {name} = {{.n = {n}, .h = {h}, .w = {w}, .c = {c}}};"
            self.counts[name.replace("dims", "data")] = n * h * w * c
        self.counts |= {"multiplier": out_channels, "shift": out_channels}
        tiles = ", ".join(
            f".{name} = {{.w = {pair[1]}, .h = {pair[0]}}}" for name, pair in (("stride", stride), ("padding", padding))
        )
        limits = f".activation = {{{low}, {high}}}"
        offsets = f".input_offset = {offset}, .output_offset = {-offset}, .dilation = {{1, 1}}"
        multiple = f".ch_mult = {out_channels // channels}, "
        for kind, more in (("conv", f"{offsets}, "), ("dw_conv", multiple + f"{offsets}, "), ("pool", "")):
            self.locals[f"{kind}_params"] = f"const cmsis_nn_{kind}_params {kind}_params = {{{more}{tiles}, {limits}}};"
        self.locals["bias_data"] = "const cmsis_nn_bias_data bias_data = {NULL, false};"
        self.locals["quant_params"] = "const cmsis_nn_per_channel_quant_params quant_params = {multiplier, shift};"
