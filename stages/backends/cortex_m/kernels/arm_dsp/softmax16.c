#include "softmax16.h"

#include "dsp.h"
#include "softmax16_tables.h"

/* The largest of `count` > 0 elements. */
DSP_INLINE int32_t largest(const int16_t *x, int32_t count)
{
    uint32_t top = (uint16_t)x[0] * 0x10001u;
    int32_t left = count - 1;
    for (x++; left >= 4; left -= 4) {
        dsp_take_larger(&top, dsp_load(x));
        dsp_take_larger(&top, dsp_load(x + 2));
        x += 4;
    }
    for (; left > 0; left--) {
        dsp_take_larger(&top, (uint16_t)*x++ * 0x10001u);
    }
    const int32_t low = (int16_t)top, high = (int32_t)top >> 16;
    return low > high ? low : high;
}

/* softmax16_value of a position from -32768 to 32767; `middle` is the middle of the table. */
DSP_INLINE int32_t value(const uint32_t *middle, int32_t position)
{
    const uint32_t line = middle[position >> 7];
    int32_t product;
    __asm__("smlatb %0, %1, %2, %3" : "=r"(product) : "r"(line), "r"(position & 127), "r"(64));
    return (int16_t)line + (product >> 7);
}

void arm_dsp_softmax_s16(const int16_t *x, int16_t *y, const int32_t *tables, int32_t rows, int32_t count, int32_t multiplier,
                         int32_t shift)
{
    const struct softmax16_tables *t = (const struct softmax16_tables *)tables;
    const struct softmax16_scale s = softmax16_scale_of(multiplier, shift);
    const int32_t doubled = s.left + 1; /* SMMULR divides by 2^32 */
    for (; rows > 0; rows--) {
        const int32_t top = largest(x, count);
        const int16_t *const end = x + count;
        uint32_t total = 0;
        int16_t *to = y;
        for (; x != end; x++) {
            const int32_t below = (int32_t)((uint32_t)(*x - top) << doubled);
            const int32_t scaled = (dsp_smmulr(below, s.multiplier) + s.add) >> s.right;
            const int32_t power = value(t->exponential + 256, dsp_ssat_16(scaled + 32767));
            *to++ = (int16_t)power;
            total += (uint32_t)power;
        }
        const struct softmax16_factor f = softmax16_factor_of(t->reciprocal, total);
        const int32_t half = 1 << (f.shift - 1);
        for (; y != to; y++) {
            const int32_t part = (*y * f.factor + half) >> f.shift;
            *y = (int16_t)(part > 32767 ? 32767 : part);
        }
    }
}
