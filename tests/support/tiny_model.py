"""A hand-written stand-in for what the emit stage writes: two layers, for tests of compile and simulate alone.

input int8[16] -> layer 0: add weights, saturating -> layer 1: maximum with 0 -> output int8[16]
"""

from pathlib import Path
from typing import Any

import numpy as np

SIZE = 16
WEIGHTS = np.arange(-8, 8, dtype=np.int8) * 10

MODEL_H = """
#define MODEL_INPUT_COUNT 1
#define MODEL_INPUT0_BYTES 16
#define MODEL_LAYER_COUNT 2
void model_init(void);
void *model_input(unsigned index);
const void *model_output(unsigned index);
void model_run(const void *const inputs[], void *const outputs[]);
"""

MODEL_C = """
#include "model.h"
#include <stdint.h>
#ifdef MODEL_HOOK
void model_layer_done(unsigned layer);
#define MODEL_LAYER_DONE(layer) model_layer_done(layer)
#else
#define MODEL_LAYER_DONE(layer) ((void)0)
#endif
int8_t model_arena[%(arena)d];
extern const int8_t model_weights[16];
void model_init(void) {}
void *model_input(unsigned index) { (void)index; return model_arena; }
const void *model_output(unsigned index) { (void)index; return model_arena + 16; }
static void saturating_add(void)
{
    for (int i = 0; i < 16; i++) {
        int sum = model_arena[i] + model_weights[i];
        model_arena[i] = (int8_t)(sum < -128 ? -128 : sum > 127 ? 127 : sum);
    }
}
static void maximum(void)
{
    for (int i = 0; i < 16; i++)
        model_arena[16 + i] = model_arena[i] > 0 ? model_arena[i] : 0;
}
void model_run(const void *const inputs[], void *const outputs[])
{
    (void)inputs;
    (void)outputs;
    saturating_add();
    MODEL_LAYER_DONE(0);
    %(fault)s
    maximum();
    MODEL_LAYER_DONE(1);
}
"""

TRACE_H = """
struct model_trace { unsigned layer; const void *data; unsigned bytes; };
static inline const void *model_trace_data(const struct model_trace *trace) { return trace->data; }
extern const struct model_trace model_traces[];
extern const unsigned model_trace_count;
"""

TRACE_C = """
#include "model_trace.h"
extern signed char model_arena[];
const struct model_trace model_traces[] = {{0, model_arena, 16}, {1, model_arena + 16, 16}};
const unsigned model_trace_count = 2;
"""


def write_tiny_model(src: Path, *, arena: int = 32, fault: str = "") -> dict[str, Any]:
    """Writes the sources into `src` and returns what model.json would hold; `fault` is C run between the layers."""
    src.mkdir(parents=True, exist_ok=True)
    values = ", ".join(str(int(weight)) for weight in WEIGHTS)
    (src / "model.h").write_text(MODEL_H)
    (src / "model.c").write_text(MODEL_C % {"arena": arena, "fault": fault})
    (src / "model_trace.h").write_text(TRACE_H)
    (src / "model_trace.c").write_text(TRACE_C)
    (src / "weights.c").write_text(
        f"#include <stdint.h>\nextern const int8_t model_weights[16];\nconst int8_t model_weights[16] = {{{values}}};\n"
    )
    plain = {"loaded_from": "", "rules": []}
    port = {"dtype": "int8", "shape": [1, SIZE], "bytes": SIZE, "scale": 1.0, "zero_point": 0}
    layer = {
        "macs": SIZE,
        "cost": None,
        "shape_in": [1, SIZE],
        "shape_out": [1, SIZE],
        "kernel": "generic",
        "layout": "",
    }
    return {
        "name": "tiny",
        "arena_bytes": arena,
        "weights_bytes": SIZE,
        "blocks": [
            {"part": part, "region": "", "bytes": size, "symbol": symbol, "section_macro": macro, **plain}
            for part, size, symbol, macro in (
                ("arena", arena, "model_arena", "ARENA_SECTION"),
                ("weights", SIZE, "model_weights", "W_SECTION"),
            )
        ],
        "inputs": [{"name": "in", **port}],
        "outputs": [{"name": "out", **port}],
        "layers": [
            {"index": 0, "name": "add", "op": "ADD", **layer},
            {"index": 1, "name": "relu", "op": "RELU", **layer},
        ],
        "traces": [{"layer": 0, "bytes": SIZE}, {"layer": 1, "bytes": SIZE}],
        "sources": {
            "c": ["model.c", {"path": "weights.c", "flags": []}],
            "assembly": [],
            "trace": ["model_trace.c"],
        },
    }


def reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of both layers for int8 inputs [inferences, 16]."""
    added = np.clip(x.astype(int) + WEIGHTS, -128, 127).astype(np.int8)
    return added, np.maximum(added, 0)
