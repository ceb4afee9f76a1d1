"""One iteration of CoreMark's performance run of 2,000 bytes, with a port of ours."""

from pathlib import Path

from stages.backends.timing.silicon import Measurement
from stages.base import StageError
from stages.delivery.bench.silicon.program import Program, flags_of

_SOURCES = ("core_list_join.c", "core_main.c", "core_matrix.c", "core_state.c", "core_util.c")
# Its main program measures for ten seconds and prints. `iterate` is what it measures, so main.c calls that.
_PORT = """\
#include <stddef.h>
#include <stdint.h>

#define HAS_FLOAT 0
#define HAS_STDIO 0
#define HAS_PRINTF 0
#define ee_printf(...) ((void)0)
#define COMPILER_VERSION ""
#define COMPILER_FLAGS ""
#define MEM_LOCATION ""
#define SEED_METHOD SEED_VOLATILE
#define MEM_METHOD MEM_STATIC
#define MULTITHREAD 1
#define MAIN_HAS_NOARGC 0
#define MAIN_HAS_NORETURN 0
#define PERFORMANCE_RUN 1
#define align_mem(x) (void *)(4 + (((ee_ptr_int)(x) - 1) & ~(ee_ptr_int)3))
#define main coremark_main

typedef int16_t ee_s16;
typedef uint16_t ee_u16;
typedef int32_t ee_s32;
typedef float ee_f32;
typedef uint8_t ee_u8;
typedef uint32_t ee_u32;
typedef uintptr_t ee_ptr_int;
typedef size_t ee_size_t;
typedef uint32_t CORE_TICKS;
typedef struct CORE_PORTABLE_S { ee_u8 portable_id; } core_portable;
extern ee_u32 default_num_contexts;
void portable_init(core_portable *p, int *argc, char *argv[]);
void portable_fini(core_portable *p);
"""
# The parts of memory and the checksums of its three algorithms are those that core_main.c computes and knows for
# seeds 0, 0 and 0x66.
_MAIN = """\
#include "coremark.h"
#undef main

volatile ee_s32 seed1_volatile = 0, seed2_volatile = 0, seed3_volatile = 0x66, seed4_volatile = 1, seed5_volatile = 0;
ee_u32 default_num_contexts = 1;
static _Alignas(16) ee_u8 memory[TOTAL_DATA_SIZE];
static core_results results[1];
#define PART (TOTAL_DATA_SIZE / NUM_ALGORITHMS)
#define OUTPUT (&results->crc)
#define OUTPUT_BYTES (sizeof results->crc)
#define CHECK() (results->crclist != 0xe714 || results->crcmatrix != 0x1fd7 || results->crcstate != 0x8e3a)

ee_s32 get_seed_32(int i);
void start_time(void) {}
void stop_time(void) {}
CORE_TICKS get_time(void) { return 0; }
secs_ret time_in_secs(CORE_TICKS ticks) { return ticks; }
void portable_init(core_portable *p, int *argc, char *argv[]) {}
void portable_fini(core_portable *p) {}

static void prepare(void)
{
    memset(results, 0, sizeof results);
    results->seed1 = (ee_s16)get_seed_32(1);
    results->seed2 = (ee_s16)get_seed_32(2);
    results->seed3 = (ee_s16)get_seed_32(3);
    results->iterations = (ee_u32)get_seed_32(4);
    results->execs = ALL_ALGORITHMS_MASK;
    results->size = PART;
    for (int i = 0; i < NUM_ALGORITHMS; i++)
        results->memblock[i + 1] = memory + PART * i;
    results->list = core_list_init(PART, results->memblock[1], results->seed1);
    core_init_matrix(PART, results->memblock[2], results->seed1 | (ee_s32)results->seed2 << 16, &results->mat);
    core_init_state(PART, results->seed1, results->memblock[3]);
}

static int run(void)
{
    iterate(results);
    return 0;
}
"""


def program(row: Measurement, folder: Path) -> Program:
    """Return the program that runs one iteration. Raises StageError."""
    if row.run != "iteration":
        raise StageError(f"CoreMark has no run '{row.run}'", hint="there is: iteration")
    files = {"core_portme.h": _PORT}
    return Program(
        tuple(folder / name for name in _SOURCES), (folder,), flags_of(row.compiler), _MAIN, files, row.compiler
    )
