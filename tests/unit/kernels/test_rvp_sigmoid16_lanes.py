"""sigmoid16_lanes.h of RV64 with its instructions in C, against the same in numpy: every int16, in both lanes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from stages.ir.arithmetic.sigmoid16 import logistic16, tanh16

RVP = Path(__file__).resolve().parents[3] / "stages" / "backends" / "riscv" / "kernels" / "rvp"
# What rvp_intrinsics.h has, lane by lane.
INTRINSICS = """
#include <stdint.h>
#define FIRMLINE_RVP_INTRINSICS_H
#define __riscv_xlen 64
typedef uint64_t rvp_word;
#define RVP_INLINE static inline
#define RVP_BINARY(name, opcode, funct3, funct7) /* below */
#define RVP_UNARY(name, opcode, funct3, funct7, field)
#define LANES(name, arguments, value)                                             \\
    static inline rvp_word rvp_##name arguments                                   \\
    {                                                                             \\
        uint64_t made = 0;                                                        \\
        for (int lane = 0; lane < 2; lane++) {                                    \\
            const int64_t x = (int32_t)(a >> 32 * lane), y = (int32_t)(b >> 32 * lane); \\
            const int shift = (int)(b & 31);                                      \\
            (void)x, (void)y, (void)shift;                                        \\
            made |= (uint64_t)(uint32_t)(value) << 32 * lane;                     \\
        }                                                                         \\
        return made;                                                              \\
    }
#define BINARY(name, value) LANES(name, (rvp_word a, rvp_word b), value)
#define BY(name, base, amount) static inline rvp_word rvp_##name(rvp_word a) { return rvp_##base(a, amount); }
BINARY(add32, x + y)
BINARY(sub32, x - y)
BINARY(smmul_u, (x * y + (1ll << 31)) >> 32)
BINARY(sll32, (uint64_t)x << shift)
BINARY(sra32, x >> shift)
BINARY(clip, x > 32767 ? 32767 : x < -32768 ? -32768 : x)
BY(sclip32_15, clip, 0)
BY(sign32, sra32, 31)
BY(shift_left_2, sll32, 2)
BY(shift_left_16, sll32, 16)
BY(shift_left_17, sll32, 17)
BY(shift_right_1, sra32, 1)
BINARY(rounded, ((x >> (shift - 1)) + 1) >> 1)
BY(half, rounded, 1)
BY(quarter, rounded, 2)
BY(bit_0, sll32, 31)
BY(bit_1, sll32, 30)
BY(bit_2, sll32, 29)
BY(bit_3, sll32, 28)
BY(bit_4, sll32, 27)
BY(bit_5, sll32, 26)
BY(bit_6, sll32, 25)
static inline rvp_word rvp_splat32(int32_t x) { return (uint64_t)(uint32_t)x * 0x100000001u; }
static inline rvp_word rvp_select_bits(rvp_word mask, rvp_word a, rvp_word b) { return (mask & a) | (~mask & b); }
"""
PROGRAM = """
#include <stdio.h>
#include "sigmoid16_lanes.h"
int main(void)
{
    for (int32_t function = -2; function <= 6; function++) {
        for (int32_t x = -32768; x <= 32767; x++) {
            const rvp_word both = (uint32_t)x | (uint64_t)(uint32_t)(-1 - x) << 32;
            const struct s16_constants *const c = s16_constants();
            const rvp_word y = function == -2   ? s16_sigmoids(both, c)
                               : function == -1 ? s16_tanhs(both, 3, 6, c)
                                                : s16_tanhs(both, function, 7, c);
            fwrite(&y, sizeof y, 1, stdout);
        }
    }
    return 0;
}
"""


def test_every_value_is_numpy_s(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(INTRINSICS + PROGRAM)
    options = ["-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run(["gcc", *options, f"-I{RVP}", str(tmp_path / "main.c"), "-o", tmp_path / "all"], check=True)
    made = subprocess.run([tmp_path / "all"], check=True, stdout=subprocess.PIPE).stdout
    found = np.frombuffer(made, np.int32).reshape(9, -1, 2)
    x = np.arange(-(1 << 15), 1 << 15)
    for lane, values in enumerate((x, -1 - x)):
        assert np.array_equal(found[0, :, lane], logistic16(values))
        assert np.array_equal(found[1, :, lane], tanh16(values, 3))
        for bits in range(7):
            assert np.array_equal(found[2 + bits, :, lane], tanh16(values, bits)), bits
