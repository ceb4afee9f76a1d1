"""Programs of `doit bench suite=silicon` on checkouts that the tests write, each with a few functions."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.bench.test_silicon import project_with, row, run

COREMARK_HEADER = """\
#define TOTAL_DATA_SIZE 2 * 1000
#define NUM_ALGORITHMS 3
#define ALL_ALGORITHMS_MASK 7
#define SEED_VOLATILE 2
#define MEM_STATIC 0
#include "core_portme.h"
typedef ee_u32 secs_ret;
typedef struct { void *list; } mat_params;
typedef struct {
    ee_s16 seed1, seed2, seed3;
    void *memblock[4];
    ee_u32 size, iterations, execs;
    void *list;
    mat_params mat;
    ee_u16 crc, crclist, crcmatrix, crcstate;
} core_results;
void *iterate(void *results);
void *core_list_init(ee_u32 bytes, void *memory, ee_s16 seed);
ee_u32 core_init_matrix(ee_u32 bytes, void *memory, ee_s32 seed, mat_params *matrix);
void core_init_state(ee_u32 bytes, ee_s16 seed, ee_u8 *memory);
"""
COREMARK_MAIN = """\
#include "coremark.h"
int main(void) {{ return 1; }}
void *iterate(void *results)
{{
    core_results *r = results;
    ee_u8 *first = r->memblock[1], *last = r->memblock[3];
    for (ee_u32 i = 0; i < r->iterations * 1000; i++)
        r->crc += *(volatile ee_u8 *)(last - 2 * 666);
    r->crclist = first + 2 * r->size == last && r->list == first && r->seed3 == 0x66 ? {crc} : 0;
    r->crcmatrix = 0x1fd7;
    r->crcstate = 0x8e3a;
    return 0;
}}
"""
COREMARK_OTHERS = {
    "core_list_join.c": "void *core_list_init(ee_u32 bytes, void *memory, ee_s16 seed) { return memory; }",
    "core_matrix.c": "ee_u32 core_init_matrix(ee_u32 bytes, void *memory, ee_s32 seed, mat_params *m) { return 0; }",
    "core_state.c": "void core_init_state(ee_u32 bytes, ee_s16 seed, ee_u8 *memory) {}",
    "core_util.c": """\
extern volatile ee_s32 seed1_volatile, seed2_volatile, seed3_volatile, seed4_volatile;
ee_s32 get_seed_32(int i)
{
    return i == 1 ? seed1_volatile : i == 2 ? seed2_volatile : i == 3 ? seed3_volatile : seed4_volatile;
}""",
}
EMBENCH = """\
#include "support.h"
void initialise_benchmark(void) {}
int benchmark(void)
{
    volatile int sum = 0;
    for (int i = 0; i < 100 * SCALE; i++)
        sum += 2;
    return sum;
}
int verify_benchmark(int result) { return result == 3200; }
"""
# As in most ports, all files are in one folder.
TINYMAIX = {
    "tm_port.h": """\
#define TM_ARCH_CPU 0
#define TM_ARCH TM_ARCH_CPU
#define TM_OPT_LEVEL 0
#define tm_malloc(x) malloc(x)
#define tm_free(x) free(x)
#define TM_GET_US() clock()
""",
    "tinymaix.h": """\
#include <stdint.h>
#include "tm_port.h"
typedef int tm_err_t;
enum { TM_OK };
typedef struct { uint8_t *data; int h, w, c; } tm_mat_t;
typedef struct { const uint8_t *weights; uint8_t *buf; } tm_mdl_t;
typedef struct tml_head tml_head_t;
tm_err_t tm_load(tm_mdl_t *m, const uint8_t *bin, uint8_t *buf, tm_err_t (*cb)(tm_mdl_t *, tml_head_t *), tm_mat_t *in);
tm_err_t tm_run(tm_mdl_t *m, tm_mat_t *in, tm_mat_t *out);
""",
    "tm_model.c": """\
#include "tinymaix.h"
tm_err_t tm_load(tm_mdl_t *m, const uint8_t *bin, uint8_t *buf, tm_err_t (*cb)(tm_mdl_t *, tml_head_t *), tm_mat_t *in)
{
    *m = (tm_mdl_t){bin, buf};
    *in = (tm_mat_t){buf, 1, 1, 4};
    return TM_OK;
}
""",
    "tm_layers.c": """\
#include "tinymaix.h"
tm_err_t tm_run(tm_mdl_t *m, tm_mat_t *in, tm_mat_t *out)
{
    volatile uint8_t sum = in->data[0];
    for (int i = 0; i < 64 << TM_OPT_LEVEL; i++)
        sum += m->weights[i];
    m->buf[8] = sum;
    *out = (tm_mat_t){m->buf + 8, 1, 1, 1};
    return TM_OK;
}
""",
    "tm_layers_O1.c": '#include "tinymaix.h"\n',
    "net_q.h": "#define MDL_BUF_LEN 16\nconst uint8_t mdl_data[256] = {1, 2, 3};\n",
}
SUPPORT = "void initialise_benchmark(void);\nint benchmark(void), verify_benchmark(int result);\n"


def checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "checkout"


def coremark(folder: Path, crc: str = "0xe714") -> str:
    others = {name: f'#include "coremark.h"\n{text}\n' for name, text in COREMARK_OTHERS.items()}
    main = {"coremark.h": COREMARK_HEADER, "core_main.c": COREMARK_MAIN.format(crc=crc)}
    return f"coremark={checkout(folder, {**main, **others})}"


def embench(folder: Path, name: str, header: str, scale: str) -> str:
    program = EMBENCH.replace("SCALE", scale)
    files = {header: "", "src/sum/sum.c": program, "support/support.h": SUPPORT, "support/beebsc.c": ""}
    return f"{name}={checkout(folder, files)}"


def iteration(**changes: Any) -> str:
    fields: dict[str, Any] = {"code": "coremark", "run": "iteration", "arguments": {}, "variant": None}
    return row(**{**fields, **changes})


@pytest.mark.parametrize("compiler", ["GCC 12 -O2", "GCC 12 -O3 -flto", "GCC 12 -Os -mfloat-abi=soft"])
def test_an_iteration_of_coremark(tmp_path: Path, compiler: str) -> None:
    code, (only,) = run(tmp_path, project_with(tmp_path, iteration(compiler=compiler)), peer=coremark(tmp_path))
    assert (code, only["failed"]) == (0, None)
    assert 3000 < only["instructions"] < only["cycles"][1] < 15_000


def test_a_linux_program_is_executable(tmp_path: Path) -> None:
    changes = {"chip": "rk3399-a53", "compiler": "GCC 12 -O2"}
    project = project_with(tmp_path, iteration(**changes))
    code, (only,) = run(tmp_path, project, only="rk3399-a53/iteration*", peer=coremark(tmp_path))
    assert (code, only["failed"], only["cycles"]) == (0, None, None)
    assert 3000 < only["instructions"] < 15_000


@pytest.mark.parametrize(
    ("changes", "crc", "message"),
    [
        ({}, "0xe715", "the function returned 1, not success"),
        ({"run": "run"}, "0xe714", "CoreMark has no run 'run'"),
    ],
)
def test_coremark_that_fails(tmp_path: Path, changes: dict[str, Any], crc: str, message: str) -> None:
    code, (only,) = run(tmp_path, project_with(tmp_path, iteration(**changes)), peer=coremark(tmp_path, crc))
    assert code == 1
    assert message in only["failed"]


@pytest.mark.parametrize(
    ("name", "header", "scale"),
    [
        ("embench", "sconstruct.py", "GLOBAL_SCALE_FACTOR"),
        ("embench-0.5", "support/dummy-libc.c", "CPU_MHZ"),
    ],
)
def test_a_program_of_embench(tmp_path: Path, name: str, header: str, scale: str) -> None:
    project = project_with(tmp_path, iteration(code=name, run="sum", arguments={"gsf": 16}))
    code, (only,) = run(tmp_path, project, peer=embench(tmp_path, name, header, scale))
    assert (code, only["failed"]) == (0, None)
    assert 1600 * 5 < only["instructions"] < 1600 * 12


@pytest.mark.parametrize(
    ("changes", "message", "expected"),
    [
        ({"arguments": {"gsf": 2}}, "the function returned 1, not success", 1),
        ({"arguments": {}}, "a row of Embench should have arguments: {gsf: NUMBER}", 1),
        (
            {"run": "sums"},
            "the checkout has no program src/sums; did you mean 'sum'?",
            0,
        ),  # another version may have it
    ],
)
def test_embench_that_fails(tmp_path: Path, changes: dict[str, Any], message: str, expected: int) -> None:
    fields = {"code": "embench", "run": "sum", "arguments": {"gsf": 16}, **changes}
    peer = embench(tmp_path, "embench", "sconstruct.py", "GLOBAL_SCALE_FACTOR")
    code, (only,) = run(tmp_path, project_with(tmp_path, iteration(**fields)), peer=peer)
    assert code == expected
    assert message in only["failed"]


def test_a_network_of_tinymaix_with_the_options_of_the_row(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"code": "tinymaix", "run": "net_q", "chip": "mine"}
    options: list[dict[str, Any]] = [{"opt": 0}, {"opt": 1}, {"opt": 1, "weights": "ram"}]
    rows = [row(**fields, arguments={"arch": "cpu", **each}) for each in options]
    project = project_with(tmp_path, *rows)
    silicon = tmp_path / "silicon.yaml"
    flash = "flash: {region: rom, wait_states: 9, line: 4, source: data sheet}, clock:"
    silicon.write_text(silicon.read_text().replace("clock:", flash, 1))
    code, (first, optimized, in_ram) = run(tmp_path, project, peer=f"tinymaix={checkout(tmp_path, TINYMAIX)}")
    assert code == 0
    assert optimized["instructions"] > 1.7 * first["instructions"] > 64
    assert in_ram["instructions"] == pytest.approx(optimized["instructions"], rel=0.02)
    assert in_ram["cycles"][1] < optimized["cycles"][1] - 64 * 9 / 4
