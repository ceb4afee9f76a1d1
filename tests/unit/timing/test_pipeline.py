"""Straight code and loops on pipelines, with what LLVM's scheduling models and the vendors' pages say of them."""

import pytest

from stages.backends.targets.timing import Timing
from stages.backends.timing.fit import CountedRun, fit, written
from stages.backends.timing.table import timed
from tests.support.timed import lines, model

DUAL = {
    "title": "two at once",
    "source": "made up",
    "instructions": "riscv",
    "parameters": {"load_latency": {"cycles": 2, "source": "fitted", "try": [1, 2, 3]}},
    "pipeline": {"width": 2, "units": {"alu": 2, "memory": 1, "multiply": 1}},
    "classes": {
        "load": {"mnemonics": ["lw"], "cycles": 1, "latency": "load_latency", "units": ["memory"]},
        "store": {"mnemonics": ["sw"], "cycles": 1, "units": ["memory"], "reads": {"data": 1}},
        "multiply": {"mnemonics": ["mul"], "cycles": 1, "latency": 3, "units": ["multiply"], "busy": 2},
        "branch_back": {"mnemonics": ["bne"], "has": ["backward"], "cycles": 1, "taken": 1, "not_taken": 4},
        "branch": {"mnemonics": ["bne"], "cycles": 1, "taken": 2},
        "alu": {"mnemonics": ["addi", "add"], "cycles": 1, "units": ["alu"]},
    },
}


def dual(**change: object) -> Timing:
    return Timing.model_validate({**DUAL, **change})


def total(timing: Timing, *texts: str, size: int = 4) -> float:
    return sum(one.follows[1] for one in timed(lines(texts, size=size), timing))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["addi a0,a0,1", "addi a1,a1,1"], 1),  # together
        (["addi a0,a0,1", "addi a1,a0,1"], 2),  # the second needs the first
        (["addi a0,a0,1", "addi a1,a1,1", "addi a2,a2,1"], 2),  # no third
        (["lw a0,0(a1)", "lw a2,4(a1)"], 2),  # one unit for memory
        (["lw a0,0(a1)", "addi a2,a2,1", "addi a0,a0,1"], 3),  # a loaded value two cycles later
        (["lw a0,0(a1)", "addi a2,a2,1", "addi a3,a3,1", "addi a4,a4,1", "addi a0,a0,1"], 3),
        (["mul a0,a1,a2", "mul a3,a1,a2"], 3),  # the unit is busy for two cycles
        (["mul a0,a1,a2", "addi a0,a0,1"], 4),
        (["addi a0,a0,1", "sw a0,0(a1)"], 1),  # what is stored is needed later
        (["addi a1,a1,1", "sw a0,0(a1)"], 2),  # an address is not
    ],
)
def test_straight_code_on_a_pipeline_of_two(texts, expected):
    assert total(dual(), *texts) == expected


@pytest.mark.parametrize(
    ("name", "texts", "size", "expected"),
    [
        # LLVM 19, ARMScheduleM55.td draws the first: pipes overlap by one beat, and two loads do not.
        ("cortex-m55", ["vldrb.u8 q0, [r0]", "vadd.i8 q1, q0, q0", "vmul.i8 q2, q1, q1", "vadd.i8 q3, q1, q1"], 4, 4),
        ("cortex-m55", ["vldrb.u8 q0, [r0]", "vldrb.u8 q1, [r1]", "vadd.i8 q2, q0, q1"], 4, 4),
        ("cortex-m55", ["ldrb r0, [r1]", "adds r2, #1"], 2, 1),  # a short addition is the second of a pair
        ("cortex-m55", ["ands r0, r1", "orrs r2, r3"], 2, 2),  # neither can
        ("cortex-m55", ["add.w r0, r1, r2", "adds r3, #1"], 4, 2),  # only short instructions
        ("cortex-m7", ["add.w r0, r1, r2", "add.w r3, r4, r5"], 4, 1),
        ("cortex-m7", ["smlad r2, r0, r1, r2", "smlad r2, r3, r4, r2"], 4, 2),  # sums are needed a cycle later
        ("cortex-m7", ["mul r2, r0, r1", "add.w r3, r2, r4"], 4, 3),
        ("cortex-m7", ["sxtb16 r2, r0", "sxtb16 r3, r1"], 4, 2),  # only the first of two
        ("andes-d45", ["addi a0,a0,1", "lw a1,0(a2)"], 4, 1),
    ],
)
def test_straight_code_of_cores(name, texts, size, expected):
    assert total(model(name), *texts, size=size) == expected


def turn(timing: Timing, *texts: str) -> tuple[float, float]:
    """Cycles of a further turn of the loop, and of the first; the last branches to the first."""
    found = timed(lines(texts, size=4), timing)
    rest = sum(one.follows[1] for one in found[1:])
    return found[0].entered[1] + rest + found[-1].taken[1], found[0].follows[1] + rest


def test_a_loop_begins_in_the_state_of_its_end():
    body = ["addi a0,a0,1", "addi a1,a1,1", "bne a1,a2,100"]
    assert turn(dual(), *body) == (3, 2)
    # The product of the turn before is needed in the second instruction.
    body = ["addi a1,a1,1", "add a3,a4,a4", "mul a4,a1,a1", "bne a1,a2,100"]
    assert turn(dual(), *body) == (4, 2)


def test_a_loop_that_is_not_left_by_its_branch_costs_the_wrong_prediction():
    found = timed(lines(["addi a1,a1,1", "bne a1,a2,100", "addi a0,a0,1"], size=4), dual())
    assert [one.follows[1] for one in found] == [1, 1, 5]


def test_a_low_overhead_loop_has_no_branch():
    body = ["vldrb.u8 q0, [r0]", "vadd.i8 q2, q0, q1", "le lr, 100"]
    assert turn(model("cortex-m55"), *body)[0] == 2


def test_operands_of_vector_and_long_instructions():
    texts = ["vpstt", "vldrbt.u8 q0, [r0], #16", "vmladavat.s8 r2, q0, q1", "smlad r0, r1, r2, r3", "strb r0, [r1, #1]"]
    _, load, product, smlad, store = (one.instruction for one in timed(lines(texts, size=4), model("cortex-m55")))
    assert load.mnemonic == "vldrb" and load.updates == {"r0"} and "predicated" in load.facts
    assert product.accumulators == {"r2"} and product.reads == {"r2", "q0", "q1"}
    assert smlad.accumulators == {"r3"} and store.data == {"r0"} and store.addresses == {"r1"}


def test_a_disturbed_parameter_is_found_again():
    timing = dual(parameters={"load_latency": {"cycles": 1, "source": "fitted", "try": [1, 2, 3]}})
    code = [["lw a0,0(a1)", "addi a0,a0,1"], ["mul a0,a1,a2", "lw a0,0(a1)", "add a3,a0,a0"]]
    rows = []
    for texts in code:
        instructions = [one.instruction for one in timed(lines(texts, size=4), dual())]
        counts = dict.fromkeys(range(len(texts)), (10, 0, 0, 0))
        rows.append(CountedRun(instructions, counts, 7, 7 + 10 * total(dual(), *texts)))
    assert fit(timing, rows) == {"load_latency": 2}


def test_fitted_figures_are_written_into_the_file():
    text = (
        "timings:\n  a:\n    parameters:\n      x: {cycles: 2, try: [1]}\n  b:\n    parameters:\n      x: {cycles: 2}\n"
    )
    assert written(text, "b", {"x": 1.5}) == text[:-2].removesuffix("{cycles: 2") + "{cycles: 1.5}\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pipeline": {"width": 2, "units": {"alu": 2}}}, "there is no unit 'memory'; there are alu"),
        ({"parameters": {}}, "there is no parameter 'load_latency'"),
        (
            {"pipeline": {**DUAL["pipeline"], "together": [{"first": ["lod"], "then": ["*"]}]}},
            "there is no class 'lod'",
        ),
    ],
)
def test_a_pipeline_that_is_wrong_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dual(**change)
