"""Pack weights of few bits in ROM, and unpack them into scratch before their layer.

    weights.bin   | 4 bits | 4 bits | ...   --step0-->   scratch | int8 | int8 | ...   --step1: the kernel-->   output

Any kernel can then read them. This saves half of the weights' ROM with 4 bits and three quarters with 2 bits. It
costs RAM for the layer's weights while the layer runs, and some instructions for each weight.
"""

from collections.abc import Mapping
from typing import Any

from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import widen
from stages.ir.arrays import Array
from stages.ir.packed import bits_of, narrowed
from stages.ir.tensor_layout import NARROW, UNPACK_INSTRUCTIONS
from stages.tensorize.plan import LayerPlan, Packable, Step
from stages.tensorize.schedule import schedule

LEAST = 64
"""Minimum bytes of a constant to pack."""

CODE = 100
"""Bytes of an unpacking function, on cores with 16-bit instructions."""


def saved(packed: Mapping[str, Array]) -> tuple[int, float]:
    """Return the ROM bytes that packing saves, less code, and the instructions that it costs."""
    packable = [(array, bits) for array in packed.values() if (bits := bits_of_constant(array))]
    size = sum(array.nbytes - -(-array.size * bits // 8) - CODE for array, bits in packable)
    return size, UNPACK_INSTRUCTIONS * sum(array.size for array, _ in packable)


def widened_bytes(packed: Mapping[str, Array]) -> dict[str, int]:
    """Return scratch bytes by name for unpacked constants."""
    return {_scratch(key): array.nbytes for key, array in packed.items() if bits_of_constant(array)}


def packable(plan: LayerPlan, packed: Mapping[str, Array]) -> Packable | None:
    """Return the effect of `narrowed_layer`, None if it changes nothing."""
    bits = {key: width for key, array in packed.items() if (width := bits_of_constant(array))}
    if not bits or len(plan.steps) != 1:
        return None
    return Packable(
        bits=max(bits.values()),
        bytes=sum(packed[key].nbytes - -(-packed[key].size * width // 8) for key, width in bits.items()),
        scratch=sum(packed[key].nbytes for key in bits),
    )


def narrowed_layer(
    plan: LayerPlan, functions: Mapping[str, Any], packed: Mapping[str, Array]
) -> tuple[LayerPlan, Mapping[str, Any], Mapping[str, Array]]:
    """Return a one-step layer with its constants packed; unchanged if none can be packed."""
    bits = {key: width for key, array in packed.items() if (width := bits_of_constant(array))}
    if not bits or len(plan.steps) != 1:
        return plan, functions, packed
    (step,) = plan.steps
    new_functions: dict[str, Any] = {}
    steps: list[Step] = []
    for key, width in bits.items():
        name = f"{step.function}_step{len(steps)}"
        new_functions[name] = _widening(packed[key].size, width, name)
        steps.append(Step(function=name, roles=(f"constant:{key}", f"scratch:{_scratch(key)}")))
    name = f"{step.function}_step{len(steps)}"
    new_functions[name] = functions[step.function].with_attr("global_symbol", name)
    wide = {f"constant:{key}": f"scratch:{_scratch(key)}" for key in bits}
    steps.append(Step(function=name, roles=tuple(wide.get(role, role) for role in step.roles)))
    count = sum(packed[key].size for key in bits)
    update = {
        "steps": tuple(steps),
        "cost": None if plan.cost is None else plan.cost + UNPACK_INSTRUCTIONS * count,
        "why": f"{plan.why}; {', '.join(bits)} of {max(bits.values())} bits, widened before it",
    }
    small = {key: narrowed(packed[key], width) for key, width in bits.items()}
    return plan.model_copy(update=update), new_functions, {**packed, **small}


def bits_of_constant(array: Array) -> int:
    """Return the bits in which a constant can be packed: 1, 2 or 4; 0 if it cannot."""
    if str(array.dtype) != "int8" or array.nbytes < LEAST:
        return 0
    return next((bits for bits in NARROW if bits >= bits_of(array)), 0)


def _scratch(key: str) -> str:
    return f"wide_{key}"


def _widening(count: int, bits: int, name: str) -> Any:
    """Return a TIR function that unpacks `count` signed integers of `bits` bits to int8[count]."""
    from tvm.tirx.script.builder import ir as T

    per_byte, sign = 8 // bits, 1 << (bits - 1)
    full_bytes, rest = divmod(count, per_byte)

    def value(byte: Any, place: int) -> Any:
        low = T.bitwise_and(T.shift_right(widen(byte), place * bits), (1 << bits) - 1)
        return T.Cast("int8", T.bitwise_xor(low, sign) - sign)

    def meaning(b: Any) -> None:
        if full_bytes:
            with loop(("i", full_bytes)) as i:
                for place in range(per_byte):
                    store(b.wide, value(b.narrow[i], place), i * per_byte + place)
        for place in range(rest):
            store(b.wide, value(b.narrow[full_bytes], place), full_bytes * per_byte + place)

    operands = Operand("narrow", (-(-count // per_byte),), "uint8"), Operand("wide", (count,), "int8", "w")
    with Function("widen") as f:
        source, target = f.constant("narrow", operands[0].shape, "uint8"), f.output(0, (count,), "int8")
        f.place(Block("elements", operands, meaning), narrow=source, wide=target)
    return schedule(f.lowering(), "widen", name).with_attr("global_symbol", name)
