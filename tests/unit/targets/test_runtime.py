"""Start-up code, host I/O, counters, watchdog and fault reports of the runtimes, on Spike, QEMU and the host."""

import pytest

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.base import StageError

RISCV = ["rv64-scalar", "rv32-scalar"]
CORTEX_M = ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
A64 = ["aarch64", "aarch64-dotprod"]
SOME = ["rv64-scalar", "rv32-scalar", "cortex-m4", "cortex-m33", "cortex-m55", "aarch64"]  # one of each runtime


def main_of(body: str, before: str = "") -> str:
    return f'#include "bench.h"\n#include <errno.h>\n{before}\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n'


def output_of(target: str, body: str, before: str = "", **options) -> str:
    return compile_and_run_c(load_target(target), [], main_of(body, before), **options).stdout


@pytest.mark.parametrize("target", [*RISCV, *CORTEX_M, *A64, "host"])
def test_variables_start_as_c_promises(target):
    before = "static int set[3] = {1, 2, 3}; static int zero[1000]; static const int constant = 7;"
    body = 'errno = 5; zero[999]++; set[1] += zero[999]; printf("%d %d %d %d", set[1], zero[998], constant, errno);'
    assert output_of(target, body, before) == "3 0 7 5"


# A register counts down from 1000: a move, then two instructions a turn.
LOOP = {
    "r0": "mov r0, #1000\\n1: subs r0, r0, #1\\nbne 1b",
    "w0": "mov w0, #1000\\n1: subs w0, w0, #1\\nb.ne 1b",
    "a0": "li a0, 1000\\n1: addi a0, a0, -1\\nbnez a0, 1b",
}


@pytest.mark.parametrize("target", [*RISCV, *CORTEX_M, *A64])
def test_instructions_are_counted_as_by_hand(target):
    """What a counted region adds is the return and the call of the counter, and moves that keep the first count."""
    register = "w0" if target in A64 else "a0" if target in RISCV else "r0"
    body = f"""
    BENCH("nothing", __asm__ volatile("" : : : "memory"));
    BENCH("loop", __asm__ volatile("{LOOP[register]}" : : : "{register}", "cc"));
    BENCH("nops", __asm__ volatile(".rept 1010\\nnop\\n.endr"));
    """
    counts = compile_and_run_c(load_target(target), [], main_of(body)).counts
    assert target in RISCV or 2 <= counts["nothing"] <= 4
    assert counts["loop"] - counts["nothing"] == 1 + 2 * 1000
    assert counts["nops"] - counts["nothing"] == 1010


def test_rv32_counter_carries_into_its_high_word():
    """minstret is set just below 2^32; the difference across the carry must stay small and positive."""
    body = """
    __asm__ volatile("csrw minstreth, zero; csrw minstret, %0" : : "r"(-20));
    uint64_t start = board_instructions();
    __asm__ volatile(".rept 100\\nnop\\n.endr");
    uint64_t end = board_instructions();
    printf("%d %d", (int)(start >> 32), (int)(end >> 32));
    printf(" %d", (int)(end - start));
    """
    run = compile_and_run_c(load_target("rv32-scalar"), [], main_of(body))
    high_before, high_after, elapsed = map(int, run.stdout.split())
    assert (high_before, high_after) == (0, 1)
    assert 100 <= elapsed < 140


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "aarch64"])
def test_markers_work_wherever_they_lie_in_a_page(target):
    """Functions `branch to STOP; nops; GO; return`, STOP anywhere near the end of a page: three are counted."""
    if target in CORTEX_M:
        page, step, thumb, branch, stop, nop, go, end = (
            1024,
            2,
            ".thumb_func",
            "b.w",
            "dbg #0",
            "nop",
            "dbg #1",
            "bx lr",
        )
    else:
        page, step, thumb, branch, stop, nop, go, end = 4096, 4, "", "b", "hint #64", "nop", "hint #65", "ret"
    distances = range(step, 24, step)
    functions = "\n".join(
        f'__asm__(".balign {page}\\n{thumb}\\nat_{d}: {branch} 1f\\n.space {page - 4 - d}\\n'
        f'1: {stop}\\n{nop}\\n{nop}\\n{go}\\n{end}"); void at_{d}(void);'
        for d in distances
    )
    benches = "\n".join(f'BENCH("{d}", at_{d}());' for d in distances)
    body = f'BENCH("nothing", __asm__ volatile("" : : : "memory"));\n{benches}'
    counts = compile_and_run_c(load_target(target), [], main_of(body, f'__asm__(".text");\n{functions}')).counts
    nothing = counts.pop("nothing")
    assert {d: count - nothing for d, count in counts.items()} == {str(d): 3 for d in distances}


@pytest.mark.parametrize("target", [*SOME, "host"])
def test_files_of_the_host_are_read_and_written_whole(target):
    """More than one request of the host interface, and not a multiple of anything."""
    content = bytes(i * 7 % 251 for i in range(200_001))
    body = """
    int in = board_open_read("in.bin"), out = board_open_write("out.bin");
    if (board_read(in, buffer, sizeof buffer) < 0 || board_write(out, buffer, sizeof buffer) < 0)
        return 1;
    printf("%d %d", board_read(in, buffer, 1), board_open_read("missing.bin") < 0);
    """
    before = f"static char buffer[{len(content)}];"
    run = compile_and_run_c(
        load_target(target), [], main_of(body, before), files={"in.bin": content}, outputs=("out.bin",)
    )
    assert run.files["out.bin"] == content
    assert run.stdout == "-1 1"


@pytest.mark.parametrize("target", [*SOME])
def test_stack_high_water_mark_is_that_of_the_deepest_call(target):
    before = """
    static __attribute__((noinline)) int deep(int n)
    {
        volatile char block[1024];
        block[n] = 1;
        return n ? deep(n - 1) + block[n] : 0;
    }
    """
    body = 'int before = (int)board_stack_used(); deep(7); printf("%d %d", before, (int)board_stack_used());'
    before_call, after_call = map(int, output_of(target, body, before).split())
    assert before_call < 2048
    assert 8 * 1024 <= after_call < 8 * 1024 + 2048


def test_exit_status_is_the_programs():
    with pytest.raises(StageError, match="ended with status 41"):
        output_of("cortex-m4", "return 41;")


NOWHERE = "0x90000000"  # no machine of these has memory of the target there
BAD_ACCESS = "access to an address without memory, or store to ROM"
BAD_JUMP = "jump to an address without memory or into data"
ARM = {
    "store to nowhere": (f"int *volatile p = (int *){NOWHERE}; *p = 1;", BAD_ACCESS),
    "load from nowhere": (f"int *volatile p = (int *){NOWHERE}; sink = *p;", BAD_ACCESS),
    "null pointer": ("int *volatile p = (int *)8; *p = 1;", BAD_ACCESS),
    "store to ROM": ("int *volatile p = (int *)&constant; *p = 1;", BAD_ACCESS),
    "jump to nowhere": (f"void (*volatile f)(void) = (void (*)(void))({NOWHERE} + 1); f();", BAD_JUMP),
    "jump into data": ("void (*volatile f)(void) = (void (*)(void))((char *)data + 1); f();", BAD_JUMP),
    "illegal instruction": ("sink = 1; __builtin_trap();", "illegal instruction"),
    "stack overflow": ("sink = deep(200000);", "stack overflow"),
    "hang": (
        "board_watchdog(200000); for (;;) { }",
        "the instruction limit was reached: the firmware hangs, or takes more",
    ),
}
SPIKE = {
    "store to nowhere": ("int *volatile p = (int *)8; *p = 1;", "store to an address without memory or to ROM"),
    "load from nowhere": ("int *volatile p = (int *)8; sink = *p;", "load from an address without memory"),
    "write to ROM": ("int *volatile p = (int *)&constant; *p = 1;", "store to an address without memory or to ROM"),
    "jump to nowhere": ("void (*volatile f)(void) = (void (*)(void))16; f();", "jump to an address without memory"),
    "illegal instruction": ('sink = 1; __asm__ volatile(".word 0");', "illegal instruction"),
    "misaligned": ("static char b[16]; int *volatile p = (int *)(b + 1); sink = *p;", "misaligned load"),
    "stack overflow": ("sink = deep(1000);", "stack overflow"),
    "hang": (
        "board_watchdog(200000); for (;;) { }",
        "the instruction limit was reached: the firmware hangs, or takes more",
    ),
}
FAULTS = [
    pytest.param(target, fault, *case, id=f"{fault}-{target}")
    for targets, faults in ((RISCV, SPIKE), (["cortex-m4", "cortex-m33", "cortex-m55", "aarch64"], ARM))
    for target in targets
    for fault, case in faults.items()
]


@pytest.mark.parametrize(("target", "fault", "statement", "cause"), FAULTS)
def test_fault_is_reported_with_cause_function_and_line(target, fault, statement, cause):
    if target == "aarch64" and fault == "illegal instruction":
        cause = "breakpoint"  # GCC's trap is UDF, or BRK on A64
    message = message_of(target, statement)
    line = next(i for i, text in enumerate(source_of(statement).splitlines(), 1) if statement in text)
    assert cause in message
    assert ("deep, main.c:" if fault == "stack overflow" else f"culprit, main.c:{line}") in message
    assert ("raise memory.stack, in the recipe" in message) == (fault == "stack overflow" and target != "aarch64")
    assert len(message.splitlines()) <= 5


def source_of(statement: str) -> str:
    before = f"""
    volatile int sink;
    short data[16];
    const int constant = 3;
    int deep(int n);
    void culprit(void);
    int deep(int n) {{ volatile char b[256]; b[0] = 1; return n ? deep(n - 1) + b[0] : 0; }}
    __attribute__((noinline)) void culprit(void)
    {{
        {statement}
    }}
    """
    return main_of("culprit();", before)


def message_of(target: str, statement: str) -> str:
    """What the user reads when `culprit` runs `statement`."""
    with pytest.raises(StageError) as raised:
        compile_and_run_c(
            load_target(target), [], source_of(statement), flags=("-O1", "-fno-optimize-sibling-calls"), timeout=30
        )
    return str(raised.value)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33"])
def test_misaligned_double_load_faults(target):
    statement = '__asm__ volatile("ldrd r2, r3, [%0]" : : "r"((char *)data + 1) : "r2", "r3", "memory");'
    assert "misaligned access" in message_of(target, statement)


def test_lock_up_is_reported_with_the_place_before_it():
    """No vector table any more: the fault cannot be taken, and QEMU gives up."""
    statement = f"*(volatile unsigned *)0xE000ED08 = {NOWHERE}; __builtin_trap();"
    message = message_of("cortex-m4", statement)
    assert "the core locked up" in message
    assert "culprit, main.c:" in message


def test_regions_that_are_no_power_of_two_are_protected_to_their_end():
    """A v7-M region is a power of two: 768 KiB of RAM at 256 KiB take two. Both ends work, what is behind faults."""
    target = load_target("cortex-m4")
    ram = target.memory.ram.model_copy(update={"origin": 0x20040000, "length": 0xC0000})
    target = target.model_copy(update={"memory": target.memory.model_copy(update={"ram": ram})})
    last = "volatile char *last = (char *)0x200fffff; *last = 5;"
    assert compile_and_run_c(target, [], main_of(f'{last} printf("%d", *last);')).stdout == "5"
    for outside in ("0x20100000", "0x20030000"):
        with pytest.raises(StageError, match=f"{BAD_ACCESS}.*{outside}"):
            compile_and_run_c(target, [], main_of(f"*(volatile char *){outside} = 1;"))


def test_program_that_does_not_end_is_stopped_by_the_clock():
    with pytest.raises(StageError, match=r"still running after 0\.3 s"):
        compile_and_run_c(load_target("host"), [], main_of("for (volatile int i = 0; i < 1; ) { }"), timeout=0.3)
