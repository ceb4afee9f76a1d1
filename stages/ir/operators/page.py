"""Write docs/reference/operators.md: `python -m stages.ir.operators.page`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from stages.ir.operators.declaration import EIGHT_BITS, INTEGERS, MOVED, UNSIGNED, Operator
from stages.ir.operators.int32 import WideInteger

_HEAD = """\
# Operators

Firmline computes these operators. The declarations in `stages/ir/operators/` are the source of this page:
`python -m stages.ir.operators.page > docs/reference/operators.md` writes it, and a test compares it with them.

| word | means |
|---|---|
| exact | computed, 8 bits in integers; every value equals LiteRT's ([arithmetic](../explanation/arithmetic.md)) |
| moved | bytes are copied, whatever they mean |
| float | computed by TVM in the type itself, within the tolerance of `verify` |
| – | refused when the model is imported or quantized, with the place in the file |

- `name` is the operator's name in rules and reports. A name with a dot can also stand alone: `model: {op: name}`.
- With 16-bit activations, weights are int8, biases int64 and zero points 0.
- The column "LiteRT" has the types that LiteRT's own kernels accept. `python -m tests.tflm.litert_types` tries them.
- `python -m tests.tflm.held` counts the cases of TFLM's operator tests and how many give equal results
  ([arithmetic](../explanation/arithmetic.md)).
- All tensors have fixed shapes of at most eight axes.
- Any other operator is refused, unless its result follows from constants and fixed shapes (SHAPE, RANGE, ...). Then it
  becomes a constant.
- [ONNX](../how-to/onnx.md) lists the ONNX operators, which become these.

| operator | name | int8, uint8 | int16 | float32 | other types | LiteRT | what must hold |
|---|---|---|---|---|---|---|---|
"""
_EDGES = ("DEQUANTIZE", "QUANTIZE")  # exact in float32 too
_REFUSED = "–"


def page() -> str:
    """Return the page in Markdown."""
    from stages.ir.operators.table import OPERATORS

    rows = "".join(f"| {' | '.join(_row(described(operator)))} |\n" for operator in OPERATORS.values())
    return f"{_HEAD}{rows}\nNext: [Kernels](kernels.md)\n"


def described(operator: Operator) -> dict[str, Any]:
    """Fields of one operator on the page.

    `litert` are the types that LiteRT accepts, [] for a plug-in's operator.
    """
    float32 = (
        "moved" if operator.moves else "exact" if operator.name in _EDGES or operator.legalization.opaque else "float"
    )
    return {
        "name": operator.name,
        "kind": operator.kind,
        "alone": operator.model is not None,
        "int8": _eight_bits(operator),
        "int16": _how(operator) if "int16" in operator.tensors.types else _REFUSED,
        "float32": float32 if "float32" in operator.tensors.types else _REFUSED,
        "others": _others(operator),
        "litert": list(_tried().get(operator.name, ())),
        "limits": "; ".join(_limits(operator)),
    }


@cache
def _tried() -> Mapping[str, Sequence[str]]:
    types: Mapping[str, Sequence[str]] = json.loads((Path(__file__).parent / "litert_types.json").read_text())
    return types


def _row(fields: Mapping[str, Any]) -> tuple[str, ...]:
    types = tuple(fields[field] for field in ("int8", "int16", "float32", "others"))
    return (
        fields["name"],
        f"`{fields['kind']}`{' .' if fields['alone'] else ''}",
        *types,
        ", ".join(fields["litert"]),
        fields["limits"],
    )


def _eight_bits(operator: Operator) -> str:
    """Return `exact` for both types, `int8: exact` for one."""
    types, support = [dtype for dtype in EIGHT_BITS if dtype in operator.tensors.types], _how(operator)
    if not types or support == _REFUSED:
        return _REFUSED
    return support if len(types) == len(EIGHT_BITS) else f"{types[0]}: {support}"


def _how(operator: Operator) -> str:
    if operator.moves:
        return "moved"
    return "exact" if operator.legalization.layers else _REFUSED


def _others(operator: Operator) -> str:
    """Types beside 8 bits and float32; those of QUANTIZE and DEQUANTIZE are in their limits."""
    others = [
        dtype
        for dtype in (*MOVED, *UNSIGNED)
        if dtype in operator.tensors.types and dtype not in (*INTEGERS, "float32")
    ]
    if operator.name in _EDGES or not others:
        return ""
    how = "moved" if operator.moves else "exact" if operator.legalization.opaque else "float"
    exact = [dtype for dtype in others if dtype == "int32" and WideInteger in operator.legalization.layers]
    rest = [dtype for dtype in others if dtype not in exact]
    parts = [f"{', '.join(names)}: {label}" for names, label in ((exact, "exact"), (rest, how)) if names]
    return "; ".join(parts)


def _limits(operator: Operator) -> Iterator[str]:
    if operator.weights.own:
        yield "quantized weights and bias are constants"
    if operator.weights.channels is not None:
        yield f"one scale for the weights, or one for each channel along axis {operator.weights.channels}"
    for dtype in dict.fromkeys(dtype for types in operator.weights.narrow.values() for dtype in types):
        data = " or ".join(kind for kind, types in operator.weights.narrow.items() if dtype in types)
        yield f"weights may be {dtype} with {data} data"
    if operator.tensors.indices:
        inputs = ", ".join(map(str, operator.tensors.indices))
        yield f"inputs {inputs} are constants" if len(operator.tensors.indices) > 1 else f"input {inputs} is a constant"
    if operator.tensors.results:
        yield f"output {' or '.join(operator.tensors.results)}"
    if operator.quantization.alike:
        yield "the output has the scale of the input"
    if operator.litert.optimized:
        yield "the reference is LiteRT's optimized kernel: it has no reference kernel"
    if operator.litert.tflm:
        yield "the reference is TFLM"
    if operator.limits:
        yield operator.limits
    if operator.tensors.state:
        yield "keeps state"


if __name__ == "__main__":
    print(page(), end="")
