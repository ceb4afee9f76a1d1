"""Start-up code, host I/O, counters and trap reports of the RISC-V runtime, on Spike, for both register widths."""

from __future__ import annotations

import pytest

from stages.base import StageError
from stages.simulators.bench import compile_and_run_c
from stages.targets.load import load_target
from stages.targets.runtime import runtime_for

RISCV = ["rv64-scalar", "rv32-scalar"]


def main_of(body: str, before: str = "") -> str:
    return f'#include "bench.h"\n#include <errno.h>\n{before}\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n'


@pytest.mark.parametrize("target", [*RISCV, "host"])
def test_variables_start_as_c_promises(target):
    before = "static int set[3] = {1, 2, 3}; static int zero[1000]; static const int constant = 7;"
    body = 'errno = 5; zero[999]++; set[1] += zero[999]; printf("%d %d %d %d", set[1], zero[998], constant, errno);'
    assert compile_and_run_c(load_target(target), [], main_of(body, before)).stdout == "3 0 7 5"


@pytest.mark.parametrize("target", RISCV)
def test_instructions_are_counted_exactly(target):
    """A thousand nops more are a thousand instructions more."""
    nops = '__asm__ volatile(".rept {}\\nnop\\n.endr");'
    body = f'BENCH("few", {nops.format(10)}) ; BENCH("many", {nops.format(1010)});'
    counts = compile_and_run_c(load_target(target), [], main_of(body)).counts
    assert counts["many"] - counts["few"] == 1000


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


@pytest.mark.parametrize("target", [*RISCV, "host"])
def test_files_of_the_host_are_read_and_written_whole(target):
    """More than one request of the host interface, and not a multiple of anything."""
    content = bytes(i * 7 % 251 for i in range((1 << 20) + 12345))
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


@pytest.mark.parametrize("target", RISCV)
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
    before_call, after_call = map(int, compile_and_run_c(load_target(target), [], main_of(body, before)).stdout.split())
    assert before_call < 1024
    assert 8 * 1024 <= after_call < 8 * 1024 + 1024


FAULTS = {
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


@pytest.mark.parametrize("target", RISCV)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_reported_with_cause_function_and_line(target, fault):
    statement, cause = FAULTS[fault]
    before = f"""
    volatile int sink;
    const int constant = 3;
    int deep(int n);
    void culprit(void);
    int deep(int n) {{ volatile char b[256]; b[0] = 1; return n ? deep(n - 1) + b[0] : 0; }}
    __attribute__((noinline)) void culprit(void)
    {{
        {statement}
    }}
    """
    source = main_of("culprit();", before)
    line = next(i for i, text in enumerate(source.splitlines(), 1) if statement in text)
    place = "deep, main.c:" if fault == "stack overflow" else f"culprit, main.c:{line}"
    with pytest.raises(StageError) as raised:
        compile_and_run_c(load_target(target), [], source, flags=("-O1", "-fno-optimize-sibling-calls"))
    message = str(raised.value)
    assert cause in message
    assert place in message
    remedy = f"the stack has 16,384 bytes: raise memory.stack, in the recipe or of {target} in pipeline.yaml"
    assert (remedy in message) == (fault == "stack overflow")
    assert len(message.splitlines()) <= 5


@pytest.mark.parametrize(
    ("statement", "cause"),
    [
        ("static int values[3]; volatile int i = 3; sink = values[i];", "index 3 out of bounds"),
        ("volatile int x = 2147483647; sink = x + 1;", "signed integer overflow"),
        ("volatile char *p = (char *)&sink; sink = p[8];", "global-buffer-overflow"),
    ],
)
def test_host_sanitizer_report_names_function_and_line(statement, cause):
    source = main_of("culprit();", f"volatile int sink;\nvoid culprit(void);\nvoid culprit(void)\n{{\n{statement}\n}}")
    line = next(i for i, text in enumerate(source.splitlines(), 1) if statement in text)
    with pytest.raises(StageError, match=cause) as raised:
        compile_and_run_c(load_target("host"), [], source, flags=("-O0",))
    assert "culprit" in str(raised.value)
    assert f"main.c:{line}" in str(raised.value)


def test_program_that_does_not_end_is_stopped_by_the_clock():
    with pytest.raises(StageError, match=r"still running after 0\.3 s"):
        compile_and_run_c(load_target("host"), [], main_of("for (volatile int i = 0; i < 1; ) { }"), timeout=0.3)


def test_unknown_family_is_refused_with_the_families_there_are():
    target = load_target("host").model_copy(update={"family": "sparc"})
    with pytest.raises(StageError, match="no family 'sparc'") as raised:
        runtime_for(target)
    assert "host, riscv" in str(raised.value)


def test_riscv_needs_a_memory_map():
    target = load_target("rv64-scalar").model_copy(update={"memory": None})
    with pytest.raises(StageError, match="needs `memory:`"):
        runtime_for(target)
