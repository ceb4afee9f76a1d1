/* Products of two matrices: tiles of 2 rows times 2 units. Elements are int16, minus the zero point. Four elements of the depth:
 * 3 loads for 8 smlad. */
#include "matmul.h"

#include <stdbool.h>

#include "dsp.h"

#define MM_ROWS 2
#define MM_UNITS 2
#define MM_CHUNK 4
#define MM_CENTRED
typedef int16_t mm_element;

/* Subtracts the halves of `less` from the halves of x. */
DSP_INLINE uint32_t less_halves(uint32_t halves, uint32_t less)
{
    uint32_t result;
    __asm__("ssub16 %0, %1, %2" : "=r"(result) : "r"(halves), "r"(less));
    return result;
}

DSP_INLINE void mm_chunk(int16_t *to, const int8_t *from, int32_t less)
{
    const uint32_t four = dsp_load(from), both = dsp_low_halves((uint32_t)less, (uint32_t)less);
    const uint32_t even = less_halves(dsp_even(four), both), odd = less_halves(dsp_odd(four), both);
    dsp_store(to, dsp_low_halves(even, odd));
    dsp_store(to + 2, dsp_high_halves(even, odd));
}

DSP_INLINE uint32_t two_bytes(const int8_t *from)
{
    uint16_t both;
    __builtin_memcpy(&both, from, 2);
    return both;
}

DSP_INLINE bool mm_columns(int16_t *to, const int8_t *from, int32_t step, int32_t less)
{
    const uint32_t both = dsp_low_halves((uint32_t)less, (uint32_t)less);
    const uint32_t first = two_bytes(from) | two_bytes(from + step) << 16;
    const uint32_t second = two_bytes(from + 2 * step) | two_bytes(from + 3 * step) << 16;
    dsp_store(to, less_halves(dsp_even(first), both));
    dsp_store(to + 2, less_halves(dsp_even(second), both));
    dsp_store(to + 4, less_halves(dsp_odd(first), both));
    dsp_store(to + 6, less_halves(dsp_odd(second), both));
    return true;
}

#define FOUR                         \
    "ldm %[x]!, {r4, r5, r6, r8}\n"  \
    "ldrd r9, r10, [%[w]], #8\n"     \
    "smlad %[a], r4, r9, %[a]\n"     \
    "smlad %[c], r6, r9, %[c]\n"     \
    "smlad %[a], r5, r10, %[a]\n"    \
    "smlad %[c], r8, r10, %[c]\n"    \
    "ldrd r9, r10, [%[w]], #8\n"     \
    "smlad %[b], r4, r9, %[b]\n"     \
    "smlad %[d], r6, r9, %[d]\n"     \
    "smlad %[b], r5, r10, %[b]\n"    \
    "smlad %[d], r8, r10, %[d]\n"
#define OPERANDS [x] "+r"(x), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d)
#define USED "r4", "r5", "r6", "r8", "r9", "r10", "memory"

DSP_INLINE void mm_tile(const int16_t *x, const int16_t *w, int32_t chunks, int32_t *sums, int32_t pitch)
{
    const int16_t *const end = x + 8 * chunks;
    int32_t a = 0, b = 0, c = 0, d = 0;
    if (chunks & 1) {
        __asm__(FOUR : OPERANDS : : USED);
    }
    if (x != end) {
        __asm__("1: " FOUR FOUR "cmp %[x], %[end]\n"
                "bne 1b\n"
                : OPERANDS
                : [end] "r"(end)
                : "cc", USED);
    }
    sums[0] = a;
    sums[1] = b;
    sums[pitch] = c;
    sums[pitch + 1] = d;
}

#include "matmul_image.h"

DSP_INLINE int32_t to_int8(int32_t x)
{
    int32_t result;
    __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(x));
    return result;
}

DSP_INLINE void mm_finish(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                          const struct fl_matmul_image *p)
{
    (void)bias;
    (void)offset;
    const int32_t multiplier = p->multiplier, right = -p->shift, half = (int32_t)((uint32_t)1 << (right - 1));
    const int32_t zero_point = p->zero_point;
    int8_t *const end = y + count;
    for (int8_t *at = y; at != end;) {
        const int32_t product = dsp_smmlar(2 * *sums++, multiplier, 0);
        *at++ = (int8_t)to_int8(((product + (product >> 31) + half) >> right) + zero_point);
    }
    if (p->low > INT8_MIN || p->high < INT8_MAX) {
        for (; y != end; y++) {
            *y = (int8_t)(*y < p->low ? p->low : *y > p->high ? p->high : *y);
        }
    }
}

void arm_dsp_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    mm_product(x, w, y, scratch, parameters);
}
