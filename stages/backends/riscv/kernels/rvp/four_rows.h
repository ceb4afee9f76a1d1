/* A row of int8 times four rows of weights: a register of each at a time, 5 loads and 4 smaqa. */
#pragma once

#include "rvp_intrinsics.h"

RVP_INLINE void rvp_row(int8_t *to, const int8_t *from, int32_t count)
{
    if (((uintptr_t)from & (RVP_WORD_BYTES - 1)) == 0) {
        for (; count >= RVP_WORD_BYTES; count -= RVP_WORD_BYTES) {
            rvp_store(to, rvp_load(from));
            to += RVP_WORD_BYTES;
            from += RVP_WORD_BYTES;
        }
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
    for (; (uintptr_t)to & (RVP_WORD_BYTES - 1);) {
        *to++ = 0;
    }
}

/* Both lanes. */
RVP_INLINE int32_t sum_of(rvp_word lanes, int32_t bias)
{
#if __riscv_xlen == 64
    lanes += lanes >> 32;
#endif
    return (int32_t)(uint32_t)((rvp_word)(uint32_t)bias + lanes);
}

RVP_INLINE void rvp_four_rows(const int8_t *row, const int8_t *w, int32_t chunks, const int32_t *bias, int32_t *sums)
{
    rvp_word a = 0, b = 0, c = 0, d = 0;
    for (const int8_t *const end = row + chunks * RVP_WORD_BYTES; row != end; row += RVP_WORD_BYTES) {
        const rvp_word x = rvp_load(row);
        a = rvp_smaqa(a, x, rvp_load(w));
        b = rvp_smaqa(b, x, rvp_load(w + RVP_WORD_BYTES));
        c = rvp_smaqa(c, x, rvp_load(w + 2 * RVP_WORD_BYTES));
        d = rvp_smaqa(d, x, rvp_load(w + 3 * RVP_WORD_BYTES));
        w += 4 * RVP_WORD_BYTES;
    }
    sums[0] = sum_of(a, bias[0]);
    sums[1] = sum_of(b, bias[1]);
    sums[2] = sum_of(c, bias[2]);
    sums[3] = sum_of(d, bias[3]);
}
