/* A row of int8, as halves, times four rows of weights: four elements, 3 loads, 8 sxtb16 and 8 smlad. */
#pragma once

#include <stddef.h>

#include "dsp.h"

/* Elements 0 and 2, then 1 and 3, of each four. */
DSP_INLINE void dsp_row(int8_t *to, const int8_t *from, int32_t count)
{
    uint32_t *at = (uint32_t *)to;
    for (; count >= 4; count -= 4) {
        const uint32_t four = dsp_load(from);
        *at++ = dsp_even(four);
        *at++ = dsp_odd(four);
        from += 4;
    }
    if (count > 0) {
        uint32_t four = 0;
        __builtin_memcpy(&four, from, (size_t)count);
        *at++ = dsp_even(four);
        *at++ = dsp_odd(four);
    }
}

#define DSP_FOUR_ROWS                      \
    "ldrd %[even], %[odd], [%[x]], #8\n" \
    DSP_TWO_ROWS("a", "b") DSP_TWO_ROWS("c", "d")
#define DSP_TWO_ROWS(first, second)                \
    "ldrd %[w0], %[w1], [%[w]], #8\n"           \
    DSP_ONE_ROW(first, "w0") DSP_ONE_ROW(second, "w1")
#define DSP_ONE_ROW(sum, word)                                        \
    "sxtb16 %[half], %[" word "]\n"                                \
    "smlad %[" sum "], %[even], %[half], %[" sum "]\n"             \
    "sxtb16 %[" word "], %[" word "], ror #8\n"                    \
    "smlad %[" sum "], %[odd], %[" word "], %[" sum "]\n"

DSP_INLINE void dsp_four_rows(const int8_t *row, const int8_t *w, int32_t chunks, const int32_t *bias, int32_t *sums)
{
    const int8_t *x = row, *const end = row + 8 * chunks;
    int32_t a = bias[0], b = bias[1], c = bias[2], d = bias[3];
    uint32_t even, odd, w0, w1, half;
    if (chunks & 1) {
        __asm__(DSP_FOUR_ROWS
                : [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [even] "=&r"(even),
                  [odd] "=&r"(odd), [w0] "=&r"(w0), [w1] "=&r"(w1), [half] "=&r"(half)
                :
                : "memory");
    }
    if (x != end) {
        __asm__("1: " DSP_FOUR_ROWS DSP_FOUR_ROWS "cmp %[x], %[end]\n"
                "bne 1b\n"
                : [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [even] "=&r"(even),
                  [odd] "=&r"(odd), [w0] "=&r"(w0), [w1] "=&r"(w1), [half] "=&r"(half)
                : [end] "r"(end)
                : "cc", "memory");
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}
