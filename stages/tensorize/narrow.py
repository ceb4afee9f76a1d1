"""Weights of few bits kept so in ROM, and widened into scratch by a step before their layer's own.

    weights.bin   | 4 bits | 4 bits | ...   --step0-->   scratch | int8 | int8 | ...   --step1: the kernel-->   output

Any kernel then reads them as if they had whole bytes. It saves half of the weights' ROM with 4 bits and three quarters
with 2, and costs the layer's weights in RAM while it runs, and some instructions for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stages.tensorize.plan import LayerPlan, Step

if TYPE_CHECKING:
    import numpy as np

LEAST = 64
"""Bytes of a constant that is worth a function."""

INSTRUCTIONS = 3.5
"""For each weight that is widened."""


CODE = 100
"""Bytes of the function that widens a constant, as compilers make it for cores with narrow instructions."""


def saved(packed: Mapping[str, np.ndarray]) -> tuple[int, float]:
    """Bytes of ROM that narrow constants save, less the code that widens them, and instructions that it takes."""
    found = [(array, bits) for array in packed.values() if (bits := bits_of_constant(array))]
    size = sum(array.nbytes - -(-array.size * bits // 8) - CODE for array, bits in found)
    return size, INSTRUCTIONS * sum(array.size for array, _ in found)


def widened_bytes(packed: Mapping[str, np.ndarray]) -> dict[str, int]:
    """By name of the scratch for a layer's narrow constants."""
    return {_scratch(key): array.nbytes for key, array in packed.items() if bits_of_constant(array)}


def narrowed_layer(
    plan: LayerPlan, functions: Mapping[str, Any], packed: Mapping[str, np.ndarray]
) -> tuple[LayerPlan, Mapping[str, Any], Mapping[str, np.ndarray]]:
    """The layer of one step with its narrow constants in as few bits as they need; as it is where it has none."""
    from stages.ir.graph.packed import narrowed

    bits = {key: found for key, array in packed.items() if (found := bits_of_constant(array))}
    if not bits or len(plan.steps) != 1:
        return plan, functions, packed
    (step,) = plan.steps
    made: dict[str, Any] = {}
    steps: list[Step] = []
    for key, width in bits.items():
        name = f"{step.function}_step{len(steps)}"
        made[name] = _widening(packed[key].size, width, name)
        steps.append(Step(function=name, roles=(f"constant:{key}", f"scratch:{_scratch(key)}")))
    name = f"{step.function}_step{len(steps)}"
    made[name] = functions[step.function].with_attr("global_symbol", name)
    wide = {f"constant:{key}": f"scratch:{_scratch(key)}" for key in bits}
    steps.append(Step(function=name, roles=tuple(wide.get(role, role) for role in step.roles)))
    count = sum(packed[key].size for key in bits)
    update = {
        "steps": tuple(steps),
        "cost": None if plan.cost is None else plan.cost + INSTRUCTIONS * count,
        "why": f"{plan.why}; {', '.join(bits)} of {max(bits.values())} bits, widened before it",
    }
    small = {key: narrowed(packed[key], width) for key, width in bits.items()}
    return plan.model_copy(update=update), made, {**packed, **small}


def bits_of_constant(array: np.ndarray) -> int:
    """1, 2 or 4: the bits in which a packed constant is kept; 0 for one that stays as it is."""
    from stages.ir.graph.packed import bits_of
    from stages.ir.tensor_layout import NARROW

    if str(array.dtype) != "int8" or array.nbytes < LEAST:
        return 0
    return next((bits for bits in NARROW if bits >= bits_of(array)), 0)


def _scratch(key: str) -> str:
    return f"wide_{key}"


def _widening(count: int, bits: int, name: str) -> Any:
    """A function of TIR: int8[count] of the signed integers that lie one after the other in `bits` each."""
    from tvm.tirx.script.builder import ir as T

    from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
    from stages.backends.kernels.tir.fixed_point import widen
    from stages.tensorize.schedule import schedule

    each, sign = 8 // bits, 1 << (bits - 1)
    whole, rest = divmod(count, each)

    def value(byte: Any, place: int) -> Any:
        low = T.bitwise_and(T.shift_right(widen(byte), place * bits), (1 << bits) - 1)
        return T.Cast("int8", T.bitwise_xor(low, sign) - sign)

    def meaning(b: Any) -> None:
        if whole:
            with loop(("i", whole)) as i:
                for place in range(each):
                    store(b.wide, value(b.narrow[i], place), i * each + place)
        for place in range(rest):
            store(b.wide, value(b.narrow[whole], place), whole * each + place)

    operands = Operand("narrow", (-(-count // each),), "uint8"), Operand("wide", (count,), "int8", "w")
    with Function("widen") as f:
        source, target = f.constant("narrow", operands[0].shape, "uint8"), f.output(0, (count,), "int8")
        f.place(Block("elements", operands, meaning), narrow=source, wide=target)
    return schedule(f.lowering(), "widen", name).with_attr("global_symbol", name)
