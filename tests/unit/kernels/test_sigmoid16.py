"""sigmoid16.h against the same in numpy, which the reference interpreter holds: every value of int16."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from stages.ir.arithmetic.sigmoid16 import logistic16, tanh16

KERNELS = Path(__file__).resolve().parents[3] / "stages" / "backends" / "kernels"
TOP = "#define S16_TOP(a, b, sum) (int32_t)((sum) + (((int64_t)(a) * (b) + (1ll << 31)) >> 32))"
PROGRAM = """
#include <stdio.h>
#include "sigmoid16.h"
int main(void)
{
    for (int32_t bits = -1; bits <= 6; bits++) {
        for (int32_t x = -32768; x <= 32767; x++) {
            const int32_t y = bits < 0 ? s16_sigmoid(x) : s16_tanh(x, bits);
            fwrite(&y, sizeof y, 1, stdout);
        }
    }
    return 0;
}
"""


@pytest.mark.parametrize("product", ["", TOP], ids=["shifted", "upper halves"])
def test_every_value_is_numpy_s(product: str, tmp_path: Path) -> None:
    """By either kind of product."""
    (tmp_path / "main.c").write_text(f"#include <stdint.h>\n{product}{PROGRAM}")
    sanitizers = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run(
        ["gcc", *sanitizers, f"-I{KERNELS / 'include'}", str(tmp_path / "main.c"), "-o", tmp_path / "all"], check=True
    )
    made = subprocess.run([tmp_path / "all"], check=True, stdout=subprocess.PIPE).stdout
    found = np.frombuffer(made, np.int32).reshape(8, -1)
    x = np.arange(-(1 << 15), 1 << 15)
    assert np.array_equal(found[0], logistic16(x))
    for bits in range(7):
        assert np.array_equal(found[1 + bits], tanh16(x, bits)), bits
