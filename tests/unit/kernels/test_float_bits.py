"""QUANTIZE and DEQUANTIZE from the bits of floats, as cores without an FPU compute them, against the float code."""

import subprocess
from pathlib import Path

import numpy as np

BACKENDS = Path(__file__).resolve().parents[3] / "stages" / "backends"
GENERIC = BACKENDS / "generic" / "kernels" / "generic"
PROGRAM = """
#include <stdio.h>
#include "dequantize.h"
#include "quantize.h"
#include "quantize_even.h"
enum { COUNT = 4096 };
int main(void)
{
    static float scale, x[COUNT], back[256];
    static int8_t away[COUNT], even[COUNT], bytes[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (int8_t)i;
    }
    while (fread(&scale, sizeof scale, 1, stdin) == 1 && fread(x, sizeof x, 1, stdin) == 1) {
        fl_quantize(x, away, COUNT, 1, scale, 3, -128, 127);
        fl_quantize_even(x, even, COUNT, 1, scale, -128, -128, 127);
        fl_dequantize_s8(bytes, back, 256, 1, scale, 7);
        fwrite(away, sizeof away, 1, stdout);
        fwrite(even, sizeof even, 1, stdout);
        fwrite(back, sizeof back, 1, stdout);
    }
    return 0;
}
"""
COUNT = 4096
LARGEST = np.finfo(np.float32).max


def scales(rng: np.random.Generator) -> list[np.float32]:
    """Usual ones, powers of two, mantissas at both ends, and the smallest and largest floats."""
    ends = [0x00000001, 0x007FFFFF, 0x00800000, 0x01000000, 0x017FFFFF, 0x3F7FFFFF, 0x3F800001, 0x7B000000, 0x7F7FFFFF]
    usual = rng.uniform(1e-4, 2, 60).astype(np.float32)
    powers = np.exp2(rng.integers(-20, 8, 20)).astype(np.float32)
    return [*usual, *powers, *np.array(ends, np.uint32).view(np.float32)]


def inputs(rng: np.random.Generator, scale: np.float32) -> np.ndarray:
    """Quotients next to halves and to integers, some floats away from them, and floats of any bits."""
    steps = rng.integers(-262, 263, COUNT) + 0.5 * rng.integers(0, 2, COUNT)
    near = np.clip(steps * np.float64(scale), -LARGEST, LARGEST).astype(np.float32)
    moved = (near.view(np.int32) + rng.integers(-4, 5, COUNT, np.int32)).view(np.float32)
    any_bits = rng.integers(0, 2**32, COUNT, np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    return np.concatenate([special, np.where(rng.integers(0, 8, COUNT) > 0, moved, any_bits)])[:COUNT]


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / f"program{len(flags)}"
    (folder / "main.c").write_text(PROGRAM)
    sources = [GENERIC / f"{name}.c" for name in ("quantize", "quantize_even", "dequantize")]
    include = [f"-I{GENERIC}", f"-I{BACKENDS / 'kernels' / 'include'}"]
    subprocess.run(["gcc", "-O2", *flags, *include, *sources, folder / "main.c", "-o", program], check=True)
    return program


def test_bits_tell_what_the_division_tells(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    data = b"".join(scale.tobytes() + inputs(rng, scale).tobytes() for scale in scales(rng))
    results = [
        subprocess.run([compiled(tmp_path, *flags)], input=data, check=True, capture_output=True).stdout
        for flags in ((), ("-D__SOFTFP__",))
    ]
    given, found = (np.frombuffer(result, np.uint8).reshape(-1, 2 * COUNT + 1024) for result in results)
    assert len(found) == len(scales(rng))
    assert (found == given).all()
