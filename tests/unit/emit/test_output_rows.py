"""An output that the application receives by rows: calls of its function, dropped images, whole copies."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.toolchain.compiler import Source
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ir.reference import Reference
from tests.support.emitted import target_named
from tests.support.stages_run import run_stages

SHAPE = (1, 11, 8, 4)

# Each line of the output is the result of one check.
CHECKS = """
#include <stdio.h>
#include <string.h>
#include "net.h"

static const int8_t image[] = {%(image)s}, expected[] = {%(expected)s};
static int8_t copy[NET_OUTPUT0_BYTES + 1];
static unsigned next, wrong, calls;

static void receive(const int8_t *rows, unsigned first, unsigned count, void *user)
{
    const unsigned size = NET_OUTPUT0_ROW_BYTES;

    calls++;
    wrong += user != &next || first != next || count == 0 || first + count > NET_OUTPUT0_ROWS;
    wrong += memcmp(rows, &expected[first * size], count * size) != 0;
    next = first + count;
}

static int is_complete(void)
{
    int complete = wrong == 0 && next == NET_OUTPUT0_ROWS && calls >= 4;

    next = wrong = calls = 0;
    return complete;
}

static void infer(void *output)
{
    const void *inputs[1] = {image};
    void *outputs[1] = {output};

    net_run(inputs, outputs);
}

int main(void)
{
    %(init)s;
    infer(NULL);
    printf("no function: %%d\\n", calls == 0);
    net_on_rows(receive, &next);
    infer(NULL);
    printf("received: %%d\\n", is_complete());
    infer(copy);
    printf("copied: %%d\\n", is_complete() && memcmp(copy, expected, sizeof expected) == 0);
    printf("not beyond: %%d\\n", copy[sizeof copy - 1] == 0);
    %(init)s;
    infer(NULL);
    printf("after init: %%d\\n", is_complete());
    printf("no memory: %%d\\n", net_output(0) == NULL && sizeof expected == NET_OUTPUT0_ROWS * NET_OUTPUT0_ROW_BYTES);
#ifdef NET_INPUT0_ROWS
    memset(copy, 0, sizeof copy);
    net_push_rows(image, NET_INPUT0_ROWS - 1);
    printf("early rows: %%d\\n", wrong == 0 && next > 0 && next < NET_OUTPUT0_ROWS && copy[0] == 0);
    net_push_rows(NULL, 0);
    next = 0;
    for (unsigned row = 0; row < NET_INPUT0_ROWS; row++)
        net_push_rows(&image[row * NET_INPUT0_ROW_BYTES], 1);
    printf("after a dropped image: %%d\\n", is_complete());
#endif
    net_on_rows(NULL, NULL);
    infer(copy);
    printf("no function again: %%d\\n", calls == 0 && memcmp(copy, expected, sizeof expected) == 0);
    return 0;
}
"""


def numbers(array: np.ndarray) -> str:
    return ", ".join(map(str, array.reshape(-1)))


@pytest.mark.parametrize(("ports", "arena"), [(("output",), "caller"), (("input", "output"), "static")])
def test_the_function_receives_each_row_once(tmp_path: Path, ports: tuple[str, ...], arena: str) -> None:
    rng, b = np.random.default_rng(4), ModelBuilder()
    x = b.input("x", SHAPE, "int8", 0.05, 3)
    for number in range(2):
        weights = rng.integers(-127, 128, (4, 3, 3, 4)).astype(np.int8)
        x = b.conv2d(x, weights, weight_scale=0.01, out=(0.2, -7), name=f"conv{number}")
    b.output(b.relu(x, out=(0.2, -7), name="relu"))
    tflite = b.build()
    (tmp_path / "net.tflite").write_bytes(tflite)
    configs = {
        "tensorize": {"count": False, **{f"{port}_rows": True for port in ports}},
        "emit": {"prefix": "net", "arena": arena, **dict.fromkeys(ports, "rows")},
    }
    file = FileModel(file=str(tmp_path / "net.tflite"))
    made = run_stages(file, target_named("host"), tmp_path / "run", configs=configs, without=("count", "ptq"))["emit"]
    (made / "src/model.h").rename(made / "src/net.h")
    for path in made.glob("src/*.c"):
        path.write_text(path.read_text().replace('"model.h"', '"net.h"'))
    image = rng.integers(-128, 128, SHAPE).astype(np.int8)
    (expected,) = Reference(tflite).run([image])
    memory = "static _Alignas(NET_ARENA_ALIGNMENT) uint8_t memory[NET_ARENA_BYTES]; net_init(memory, sizeof memory)"
    checks = CHECKS % {
        "image": numbers(image),
        "expected": numbers(expected),
        "init": f"{{ {memory}; }}" if arena == "caller" else "net_init()",
    }
    model = json.loads((made / "model.json").read_text())
    assert model["output_rows"] == SHAPE[1]
    (held,) = (t for row in model["arena"] for t in row["holds"] if t["name"] == "relu")
    assert held["rows"] < held["height"] == SHAPE[1]
    files = [Source(made / "src" / f) for kind in ("c", "assembly") for f in model["sources"][kind]]
    flags = ["-fsanitize=address,undefined"]
    run = compile_and_run_c(target_named("host"), files, checks, include=[made / "src"], flags=flags)
    lines = run.stdout.splitlines()
    assert len(lines) == 7 + 2 * ("input" in ports) and all(line.endswith(": 1") for line in lines), lines
