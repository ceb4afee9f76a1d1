"""Programs of known length on the simulators, with what their instructions take."""

import pytest

from stages.backends.targets.load import load_target
from tests.support.timed import run_timed, target_with

ARM = """
#include "board.h"
void spin(int turns);
__attribute__((noinline, naked, aligned(4))) void spin(int turns)
{
    __asm__ volatile(".syntax unified\\n\\t.balign 4\\n1: %s\\n\\tsubs r0, r0, #1\\n\\tbne 1b\\n\\tbx lr");
}
void nothing(int turns);
__attribute__((noinline, naked, aligned(4))) void nothing(int turns)
{
    __asm__ volatile("bx lr");
}
__attribute__((noinline)) static void measure(void (*what)(int), int turns)
{
    board_instructions();
    what(turns);
    board_instructions();
}
int main(void)
{
    measure(nothing, 0);
    measure(spin, 1);
    measure(spin, 1);
    measure(spin, 201);
    board_exit(0);
}
"""
RISCV = (
    ARM.replace(".syntax unified\\n\\t", "")
    .replace("subs r0, r0, #1", "addi a0, a0, -1")
    .replace("bne 1b", "bnez a0, 1b")
    .replace("bx lr", "ret")
)


@pytest.mark.parametrize(
    ("core", "work", "turn"),
    [
        ("cortex-m4", "nop", 4),  # nop, subs, bne and a refill of one
        ("cortex-m4", "ldr r1, [sp]; ldr r2, [sp]; ldr r3, [sp]", 7),
        ("cortex-m4", "ldr.w r1, [sp]; ldr.w r2, [sp]", 6),
        ("cortex-m0plus", "nop", 4),  # the branch takes two
        ("cortex-m0plus", "ldr r1, [sp]; ldr r2, [sp]", 7),
    ],
)
def test_turns_of_a_loop_on_arm(tmp_path, core, work, turn):
    nothing, _, once, often = run_timed(load_target(core), ARM.replace("%s", work), tmp_path)[::2]
    instructions = work.count(";") + 3
    assert often.instructions - once.instructions == 200 * instructions
    assert often.cycles[1] - once.cycles[1] == 200 * turn
    assert often.cycles[0] <= often.cycles[1] <= often.cycles[2]
    # Once through the loop the branch is not taken.
    loop = turn - 1
    assert once.cycles[1] - nothing.cycles[1] == loop


@pytest.mark.parametrize(
    ("timing", "work", "turn"),
    [
        ("ibex", "nop", 5),
        ("cv32e40p", "nop", 5),
        ("cv32e40p", "lw a1, 0(sp); addi a1, a1, 1", 7),
        ("ibex", "lw a1, 0(sp); addi a1, a1, 1", 7),
    ],
)
def test_turns_of_a_loop_on_riscv(tmp_path, timing, work, turn):
    nothing, _, once, often = run_timed(target_with("rv32imc-scalar", timing), RISCV.replace("%s", work), tmp_path)[::2]
    assert often.instructions - once.instructions == 200 * (work.count(";") + 3)
    assert often.cycles[1] - once.cycles[1] == 200 * turn
    assert once.cycles[1] - nothing.cycles[1] == turn - 2


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc-scalar"])
def test_an_instruction_without_a_class_is_reported_where_it_ran(tmp_path, target):
    if target == "cortex-m4":
        chosen, text = load_target(target), ARM.replace("%s", "dsb")
    else:
        chosen, text = target_with(target, "cv32e40p"), RISCV.replace("%s", "fence")
    first, *rest = run_timed(chosen, text, tmp_path)[::2]
    assert first.untimed == 0 and all(one.untimed for one in rest)


# Of eight instructions of two bytes, which fill a line, and two in the next.
NOPS = "; ".join(["nop"] * 8)


@pytest.mark.parametrize(
    ("work", "flash", "turn"),
    [
        ("nop", {}, 4),  # stays in its line
        (NOPS, {}, 11 + 2 * 5),
        (NOPS, {"prefetch": True}, 11 + 5),  # the second line is there when it is needed, the first is jumped to
        (NOPS, {"prefetch": True, "wait_states": 20}, 11 + 20 + 12),
        (NOPS, {"instruction_lines": 2}, 11),
        (NOPS, {"instruction_lines": 1}, 11 + 2 * 5),
        ("ldr r1, [pc, #0]", {}, 5 + 5),
        ("ldr r1, [pc, #0]", {"data_lines": 1}, 5),
        ("ldr r1, [sp]", {}, 5),  # of RAM
        ("ldrd r2, r3, [pc, #0]", {}, 6 + 2 * 5),
        (f"{NOPS}; ldr r1, [pc, #16]", {"cache_lines": 3}, 13),
        (f"{NOPS}; ldr r1, [pc, #16]", {"cache_lines": 1}, 13 + 3 * 5),
        (f"{NOPS}; {NOPS}", {"instruction_lines": 3}, 19),  # three lines
        (f"{NOPS}; {NOPS}", {"instruction_lines": 2, "ways": 1}, 19 + 2 * 5),  # of which two share a set
    ],
)
def test_wait_states_of_flash_on_arm(tmp_path, work, flash, turn):
    target = target_with("cortex-m4", "cortex-m4", **{"wait_states": 5, "line": 16, **flash})
    *_, once, often = run_timed(target, ARM.replace("balign 4", "balign 16").replace("%s", work), tmp_path)[::2]
    assert often.cycles[1] - once.cycles[1] == 200 * turn
    bare = target.model_copy(update={"flash": None})
    assert [one.instructions for one in (once, often)] == [
        one.instructions for one in run_timed(bare, (tmp_path / "main.c").read_text(), tmp_path)[4::2]
    ]


def test_wait_states_that_are_a_range(tmp_path):
    target = target_with("cortex-m4", "cortex-m4", wait_states=[2, 6], line=16)
    *_, once, often = run_timed(target, ARM.replace("balign 4", "balign 16").replace("%s", NOPS), tmp_path)[::2]
    _, estimate, most = (after - before for before, after in zip(once.cycles, often.cycles, strict=True))
    assert (estimate, most - 200 * 2) == (200 * (11 + 2 * 2), 200 * (11 + 2 * 6))  # 2: a branch of 1 to 3 cycles


@pytest.mark.parametrize(
    ("flash", "turn"), [({}, 12 + 2 * 5), ({"prefetch": True}, 12 + 5), ({"instruction_lines": 2}, 12)]
)
def test_wait_states_of_flash_on_riscv(tmp_path, flash, turn):
    target = target_with("rv32imc-scalar", "ibex", **{"wait_states": 5, "line": 16, **flash})
    text = RISCV.replace("balign 4", "balign 16").replace("%s", NOPS)
    *_, once, often = run_timed(target, text, tmp_path)[::2]
    assert often.cycles[1] - once.cycles[1] == 200 * turn


def test_branches_that_are_predicted_wrong(tmp_path):
    target = target_with("cortex-m7", "cortex-m7")
    parameters = target.timing_model.parameters
    missed = parameters["missed"].cycles[1]
    flat = {name: {**dict(one), "cycles": (0, 0, 0)} for name, one in parameters.items() if name == "missed"}
    model = target.timing_model.model_copy(
        update={"parameters": {**parameters, "missed": parameters["missed"].model_copy(update=flat["missed"])}}
    )
    work = ARM.replace("%s", "tst r0, #1; beq 2f; nop; 2:")  # every second turn jumps
    with_penalty, without = (
        run_timed(one, work, tmp_path)[-1].cycles[1]
        for one in (target, target.model_copy(update={"timing_model": model}))
    )
    # The counter of two bits is wrong in every second turn, and at the loop's begin and end.
    assert with_penalty - without == pytest.approx(100 * missed, abs=4 * missed)
