"""What the manuals say of single instructions and pairs, by the timing models of pipeline.yaml."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from stages.backends.kernels.folder import INCLUDE
from stages.backends.kernels.registry import folders_of
from stages.backends.riscv import decode_riscv
from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.timing import Timing, decoder
from stages.backends.timing.disassembly import disassemble
from stages.backends.timing.table import kinds_of, timed
from stages.backends.toolchain.compiler import Source, compile_sources
from stages.emit.kernel_sources import copy_kernels
from tests.support.timed import cycles, lines, model, straight


@pytest.mark.parametrize(
    ("name", "texts", "expected"),
    [
        # DDI 0337I and the manual of the Cortex-M4, Load/store timings, "some optimized examples".
        ("cortex-m4", ["ldr r0, [r1]", "ldr r1, [r2]"], 3),
        ("cortex-m4", ["ldr r0, [r1, r2]", "str r0, [r3, #20]"], 3),
        ("cortex-m4", ["ldr r0, [r1, r2]", "str r1, [r3, r2]"], 3),
        ("cortex-m4", ["ldr r0, [r1, r5]", "ldr r1, [r2]", "ldr r2, [r3, #4]"], 4),
        # The address of the second depends on the first.
        ("cortex-m4", ["ldr r0, [r1]", "ldr r2, [r0]"], 4),
        ("cortex-m4", ["ldrb.w r0, [r1], #1", "ldrb.w r2, [r1], #1"], 4),
        # An address that was just computed is one cycle late.
        ("cortex-m4", ["adds r1, #4", "ldr r0, [r1]"], 4),
        ("cortex-m4", ["adds r1, #4", "nop", "ldr r0, [r1]"], 4),
        ("cortex-m4", ["adds r1, #4", "str r0, [r1, #0]"], 3),
        ("cortex-m4", ["ldrd r0, r1, [r2]"], 3),
        ("cortex-m4", ["ldmia.w r0!, {r1, r2, r3}"], 4),
        ("cortex-m4", ["push {r4, r5, r6, lr}"], 5),
        ("cortex-m4", ["smlad r0, r1, r2, r3"], 1),
        ("cortex-m4", ["smlal r0, r1, r2, r3"], 1),
        ("cortex-m4", ["mla r0, r1, r2, r3"], 1),
        ("cortex-m4", ["str r0, [r1, #4]"], 1),
        ("cortex-m4", ["vldr s0, [r0]", "vmla.f32 s1, s0, s2"], 5),
        ("cortex-m4", ["vadd.f32 s0, s1, s2", "vadd.f32 s3, s0, s2"], 3),
        ("cortex-m4", ["vadd.f32 s0, s1, s2", "vadd.f32 s3, s4, s2"], 2),
        ("cortex-m4", ["vpush {d8-d9}"], 5),
        # One float or two to and from core registers; between floating-point registers, an immediate, half of a double.
        ("cortex-m4", ["vmov r0, s0"], 2),
        ("cortex-m4", ["vmov s0, r0"], 2),
        ("cortex-m4", ["vmov r0, r1, d8"], 2),
        ("cortex-m4", ["vmov s1, s2, r3, sl"], 2),
        ("cortex-m4", ["vmov.f32 s0, s16"], 1),
        ("cortex-m4", ["vmov.f32 s0, #112"], 1),
        ("cortex-m4", ["vmov.32 d8[0], r1"], 1),
        ("cortex-m4", ["udiv r0, r1, r2"], 12),
        ("cortex-m0plus", ["ldr r0, [r1, #0]", "ldr r1, [r2, #0]"], 4),
        ("cortex-m0plus", ["str r0, [r1, r2]"], 2),
        ("cortex-m0plus", ["push {r4, r5, lr}"], 4),
        ("cortex-m0plus", ["muls r0, r1"], 1),
        ("cortex-m0plus", ["mrs r0, PRIMASK"], 3),
        ("ibex", ["lw a0,0(a1)", "addi a0,a0,1"], 3),
        ("ibex", ["sw a0,0(a1)"], 2),
        ("ibex", ["mul a0,a1,a2", "mulh a0,a1,a2"], 7),
        ("cv32e40p", ["lw a0,0(a1)", "addi a2,a0,1"], 3),
        ("cv32e40p", ["lw a0,0(a1)", "addi a2,a3,1"], 2),
        ("cv32e40p", ["lw a0,0(a1)", "sw a0,4(a1)"], 3),
        ("cv32e40p", ["c.lwsp a0,4(sp)", "c.add a1,a0"], 3),
        ("cv32e40p", ["c.lwsp a0,4(sp)", "c.li a0,1"], 2),
        ("cv32e40p", ["mul a0,a1,a2", "mulhu a0,a1,a2"], 6),
        ("cv32e40p", ["div a0,a1,a2"], 35),
    ],
)
def test_straight_code(name, texts, expected):
    assert straight(name, *texts) == expected


@pytest.mark.parametrize(
    ("name", "text", "not_taken", "taken"),
    [
        ("cortex-m4", "bne.n 100", 1, 1),
        ("cortex-m4", "pop {r4, pc}", 3, 2),
        ("cortex-m4", "ldr.w pc, [r1]", 2, 3),
        ("cortex-m4", "tbb [pc, r1]", 3, 3),
        ("cortex-m4", "cbz r0, 100", 1, 1),
        ("cortex-m0plus", "beq.n 100", 1, 1),
        ("cortex-m0plus", "bl 100", 1, 2),
        ("cortex-m0plus", "pop {r4, pc}", 3, 2),
        ("ibex", "beq a0,a1,100", 1, 2),
        ("ibex", "jal ra,100", 1, 1),
        ("cv32e40p", "c.bnez a0,100", 1, 2),
        ("cv32e40p", "jalr zero,0(ra)", 1, 1),
    ],
)
def test_branches(name, text, not_taken, taken):
    (one,) = cycles(name, text)
    assert (one.follows[1], one.taken[1]) == (not_taken, taken)


def test_what_is_jumped_to_owes_nothing_to_the_instruction_before_it():
    first, second = cycles("cortex-m4", "ldr r0, [r1]", "ldr r2, [r3]")
    assert (first.entered, second.follows[1], second.entered[1]) == (first.follows, 1, 2)


def test_a_long_instruction_at_no_multiple_of_four_is_fetched_in_two():
    texts = ["add.w r0, r1, r2"]
    at = [timed(lines(texts, size=4, start=start), model("cortex-m4"))[0] for start in (256, 258)]
    assert [one.entered[1] - one.follows[1] for one in at] == [0, 1]
    (load,) = timed(lines(["lw a0,0(a1)"], size=4, start=258), model("cv32e40p"))
    assert load.entered == (2, 2, 2)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("vsetvli t0,a3,e8,m8,ta,ma", {"a3"}, {"t0"}),
        ("vlse8.v v8,(a0),a4", {"a0", "a4"}, {"v8"}),
        ("vsse8.v v8,(a0),a4", {"a0", "a4", "v8"}, set()),
        ("vsub.vx v8,v8,a7,v0.t", {"v8", "a7", "v0"}, {"v8"}),
        ("vwmacc.vx v16,a5,v12", {"v16", "a5", "v12"}, {"v16"}),
        ("vmv.x.s a0,v1", {"v1"}, {"a0"}),
    ],
)
def test_registers_of_vector_instructions(text, reads, writes):
    (found,) = decode_riscv.decode(lines([text], size=4))
    assert (found.reads, found.writes) == (reads, writes)


def test_an_instruction_that_no_class_has_is_reported():
    assert [one.kind for one in cycles("cortex-m4", "vrintz.f32 s0, s1", "nop")] == ["", "alu"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [{"first": ["lod"], "then": ["load"], "cycles": 1}]}, "there is no class 'lod'; there are load"),
        ({"classes": {"load": {"mnemonics": ["lw"]}}}, "Field required"),
        ({"classes": {"load": {"mnemonics": ["lw"], "cycles": [3, 2]}}}, r"the cycles \[3, 2\] must rise"),
        ({"classes": {"load": {"mnemonics": ["lw"], "cycles": "two"}}}, "there is no parameter 'two'"),
        ({"classes": {"load": {"mnemonics": ["lw"], "cycles": -1}}}, "must not be negative"),
        ({"classes": {"load": {"mnemonics": [], "cycles": 1}}}, "at least 1 item"),
        ({"source": ""}, "at least 1 character"),
    ],
)
def test_a_model_that_is_wrong_is_refused(change, message):
    fine = {
        "title": "t",
        "source": "s",
        "instructions": "riscv",
        "classes": {"load": {"mnemonics": ["lw"], "cycles": 1}},
    }
    Timing.model_validate(fine)
    with pytest.raises(ValidationError, match=message):
        Timing.model_validate(fine | change)


@pytest.mark.parametrize(
    "target", ["cortex-m55", "cortex-m4", "cortex-m7", "cortex-m0plus", "esp32-c3", "hpm6750evkmini"]
)
def test_all_instructions_of_kernels_have_a_class(target: str, tmp_path: Path) -> None:
    """A run is refused if one has none, such as vcadd of a Fourier transform."""
    core = load_target(target)
    folders, timing = folders_of(core), core.timing_model
    assert timing is not None
    files = sorted({f"{of.name}/{file}" for of in folders.values() for kernel in of.kernels for file in kernel.sources})
    copy_kernels(files, tmp_path, folders)
    sources = [Source(tmp_path / file) for file in files]
    flags = ("-std=gnu11", "-O2", "-w")
    objects = compile_sources(core, runtime_for(core), sources, tmp_path / "objects", flags=flags, include=(INCLUDE,))
    without = set()
    for compiled in objects:
        instructions = list(decoder(timing.instructions).decode(disassemble(compiled, core)))
        kinds = kinds_of(instructions, timing.resolved())
        without |= {one.mnemonic for one, kind in zip(instructions, kinds, strict=True) if not kind}
    assert without == set()
