"""Start-up code, host I/O, counter, watchdog and fault reports of the Arm runtimes, on QEMU."""

from __future__ import annotations

import shutil

import pytest

from stages.base import StageError
from stages.simulators.bench import compile_and_run_c
from stages.targets.load import load_target
from stages.targets.runtime import runtime_for

CORTEX_M = ["cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
A64 = ["aarch64", "aarch64-dotprod"]
ALL = [*CORTEX_M, *A64]

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("qemu-system-arm", "qemu-aarch64", "arm-none-eabi-gcc", "aarch64-linux-gnu-gcc"))),
    reason="the Arm compilers and QEMU are not installed",
)


def main_of(body: str, before: str = "") -> str:
    return f'#include "bench.h"\n#include <errno.h>\n{before}\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n'


def output_of(target: str, body: str, before: str = "", **options) -> str:
    return compile_and_run_c(load_target(target), [], main_of(body, before), **options).stdout


@pytest.mark.parametrize("target", ALL)
def test_variables_start_as_c_promises(target):
    before = "static int set[3] = {1, 2, 3}; static int zero[1000]; static const int constant = 7;"
    body = 'errno = 5; zero[999]++; set[1] += zero[999]; printf("%d %d %d %d", set[1], zero[998], constant, errno);'
    assert output_of(target, body, before) == "3 0 7 5"


# r0 / w0 counts down from 1000: a move, then two instructions a turn.
LOOP = {
    "thumb": "mov r0, #1000\\n1: subs r0, r0, #1\\nbne 1b",
    "a64": "mov w0, #1000\\n1: subs w0, w0, #1\\nb.ne 1b",
}


@pytest.mark.parametrize("target", ALL)
def test_instructions_are_counted_as_by_hand(target):
    """What a counted region adds is the return and the call of the counter, and moves that keep the first count."""
    loop = LOOP["a64" if target in A64 else "thumb"]
    clobbered = '"w0"' if target in A64 else '"r0"'
    body = f"""
    BENCH("nothing", __asm__ volatile("" : : : "memory"));
    BENCH("loop", __asm__ volatile("{loop}" : : : {clobbered}, "cc"));
    BENCH("nops", __asm__ volatile(".rept 1010\\nnop\\n.endr"));
    """
    counts = compile_and_run_c(load_target(target), [], main_of(body)).counts
    assert 2 <= counts["nothing"] <= 4
    assert counts["loop"] - counts["nothing"] == 1 + 2 * 1000
    assert counts["nops"] - counts["nothing"] == 1010


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


@pytest.mark.parametrize(
    ("target", "statement", "result"),
    [
        ("cortex-m4", '__asm__("smlad %0, %1, %2, %3" : "=r"(x) : "r"(0x00030002), "r"(0x00050004), "r"(1));', 24),
        ("cortex-m7", "volatile double a = 1.5; x = (int)(a * 4.0);", 6),
        ("cortex-m33", '__asm__("smlad %0, %1, %2, %3" : "=r"(x) : "r"(0x00030002), "r"(0x00050004), "r"(1));', 24),
        ("cortex-m55", '__asm__("vdup.8 q0, %1\\nvmov q1, q0\\nvmladav.s8 %0, q0, q1" : "=Te"(x) : "r"(3));', 16 * 9),
        (
            "aarch64-dotprod",
            '__asm__("movi v0.16b, #3\\nmovi v1.4s, #0\\nsdot v1.4s, v0.16b, v0.16b\\nmov %w0, v1.s[0]" : "=r"(x));',
            4 * 9,
        ),
    ],
)
def test_the_extension_a_target_is_for_works(target, statement, result):
    assert output_of(target, f'int x; {statement} printf("%d", x);') == str(result)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "aarch64"])
def test_files_of_the_host_are_read_and_written_whole(target):
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


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33", "aarch64"])
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
FAULTS = {
    "store to nowhere": (f"int *volatile p = (int *){NOWHERE}; *p = 1;", BAD_ACCESS),
    "load from nowhere": (f"int *volatile p = (int *){NOWHERE}; sink = *p;", BAD_ACCESS),
    "null pointer": ("int *volatile p = (int *)8; *p = 1;", BAD_ACCESS),
    "store to ROM": ("int *volatile p = (int *)&constant; *p = 1;", BAD_ACCESS),
    "jump to nowhere": (f"void (*volatile f)(void) = (void (*)(void))({NOWHERE} + 1); f();", BAD_JUMP),
    "jump into data": ("void (*volatile f)(void) = (void (*)(void))((char *)data + 1); f();", BAD_JUMP),
    "illegal instruction": ("sink = 1; __builtin_trap();", ""),
    "stack overflow": ("sink = deep(200000);", "stack overflow"),
    "hang": (
        "board_watchdog(200000); for (;;) { }",
        "the instruction limit was reached: the firmware hangs, or takes more",
    ),
}


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33", "cortex-m55", "aarch64"])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_reported_with_cause_function_and_line(target, fault):
    statement, cause = FAULTS[fault]
    if fault == "illegal instruction":
        cause = "breakpoint" if target == "aarch64" else "illegal instruction"  # GCC's trap is UDF, or BRK on A64
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


def test_lock_up_is_told_with_the_place_before_it():
    """No vector table any more: the fault cannot be taken, and QEMU gives up."""
    statement = f"*(volatile unsigned *)0xE000ED08 = {NOWHERE}; __builtin_trap();"
    message = message_of("cortex-m4", statement)
    assert "the core locked up" in message
    assert "culprit, main.c:" in message


def test_watchdog_that_is_disarmed_or_generous_lets_the_program_end():
    wait = "for (volatile int i = 0; i < 5000; i++) { }"
    assert output_of("cortex-m4", f'board_watchdog(1000); board_watchdog(0); {wait} printf("done");') == "done"
    assert output_of("cortex-m4", f'board_watchdog(1000000); {wait} printf("done");') == "done"


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


@pytest.mark.parametrize("target", CORTEX_M)
def test_memory_map_is_the_linkers(target, tmp_path):
    """The reset vector lies at the start of ROM, the stack at the start of RAM."""
    memory = load_target(target).memory
    body = 'printf("%x %x %x", (unsigned)vectors, (unsigned)__stack_bottom, (unsigned)__stack_top);'
    before = "extern unsigned vectors[], __stack_bottom[], __stack_top[];"
    rom, low, high = (int(word, 16) for word in output_of(target, body, before).split())
    assert (rom, low, high) == (memory.rom.origin, memory.ram.origin, memory.ram.origin + memory.stack)


def test_cortex_m_needs_a_memory_map():
    target = load_target("cortex-m4").model_copy(update={"memory": None})
    with pytest.raises(StageError, match="needs `memory:`"):
        runtime_for(target)
