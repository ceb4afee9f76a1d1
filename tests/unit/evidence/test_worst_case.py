"""The bound of a layer's instructions for any input."""

from stages.backends.timing.instruction import Instruction
from stages.backends.timing.log import Counts
from stages.delivery.evidence.worst_case import Bound, Code, bound


def program(*lines: str) -> Code:
    """Instructions of two bytes: a mnemonic, and for branches the number of the target."""
    instructions = []
    for number, line in enumerate(lines):
        mnemonic, _, target = line.partition(" ")
        reached = 2 * int(target) if target.isdigit() else -1
        writes = frozenset({"pc"}) if target == "pc" else frozenset[str]()
        instructions.append(Instruction(2 * number, 2, line, mnemonic, target=reached, writes=writes))
    return Code(instructions)


LOOP = program("mov", "cmp", "beq 5", "add", "add", "subs", "bne 1", "bx")


def iterations(count: int) -> dict[int, Counts]:
    """Counts of LOOP, entered by a call, whose branch skips two instructions in each iteration."""
    again = count - 1
    return {
        0: (0, 1, 0, 0),
        1: (1, again, 0, 0),
        2: (count, 0, count, 0),
        5: (0, count, 0, 0),
        6: (count, 0, again, 0),
        7: (1, 0, 1, 0),
    }


def test_a_branch_in_a_loop_counts_with_its_longer_way_in_each_iteration() -> None:
    assert bound(LOOP, [iterations(5)]) == Bound(2 + 5 * 6, repeats=True, counted=2 + 5 * 4)


def test_a_loop_whose_iterations_depend_on_the_input_has_no_bound() -> None:
    assert not bound(LOOP, [iterations(5), iterations(6)]).repeats


def test_inner_loops_and_computed_jumps_begin_segments() -> None:
    # 0 outer head, 1 and 2 inner loop, 3 back; 4 jumps to the instruction after it, as code of variants does.
    code = program("mov", "subs", "bne 1", "bne 0", "ldr pc", "cmp", "beq 8", "add", "bx")
    counts: dict[int, Counts] = {
        0: (0, 3, 0, 0),
        1: (3, 6, 0, 0),
        2: (9, 0, 6, 0),
        3: (3, 0, 2, 0),
        4: (1, 0, 0, 0),
        5: (1, 0, 0, 0),
        6: (1, 0, 1, 0),
        8: (0, 1, 0, 0),
    }
    assert bound(code, [counts]) == Bound(3 * 2 + 9 * 2 + 1 + 4, repeats=True, counted=3 * 2 + 9 * 2 + 1 + 3)


def test_code_after_a_call_continues_the_segment_before_it() -> None:
    code = program("bl 3", "cbz 2", "bx", "add", "bx")
    counts: dict[int, Counts] = {0: (0, 1, 1, 0), 1: (0, 1, 1, 0), 2: (0, 1, 0, 0), 3: (0, 1, 0, 0), 4: (1, 0, 1, 0)}
    assert bound(code, [counts]) == Bound(5, repeats=True, counted=5)
