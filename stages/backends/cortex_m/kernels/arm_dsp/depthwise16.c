/* Four channels at a time. A word of weights has one tap of these channels, in the order 0, 2, 1, 3. */
#include "depthwise16.h"

#include "dsp.h"

#define D16_GROUP 4
#define D16_PIXEL pixel
#define D16_COPY copy
#define D16_ZERO zero

/* Sums of four channels. */
struct four {
    int32_t a, b, c, d;
};

/* Adds the products of a tap: elements at *x, `column` bytes apart, and consecutive weights at *w. */
DSP_INLINE void add_products(struct four *sums, const int16_t **x, const int8_t **w, int32_t column)
{
    uint32_t even, odd, low, high;
    __asm__("ldr %[odd], [%[w]], #4\n\t"
            "ldr %[low], [%[x]]\n\t"
            "ldr %[high], [%[x], #4]\n\t"
            "sxtb16 %[even], %[odd]\n\t"
            "sxtb16 %[odd], %[odd], ror #8\n\t"
            "smlabb %[a], %[low], %[even], %[a]\n\t"
            "smlatt %[b], %[low], %[even], %[b]\n\t"
            "smlabb %[c], %[high], %[odd], %[c]\n\t"
            "smlatt %[d], %[high], %[odd], %[d]\n\t"
            "add %[x], %[x], %[column]"
            : [a] "+r"(sums->a), [b] "+r"(sums->b), [c] "+r"(sums->c), [d] "+r"(sums->d), [x] "+r"(*x), [w] "+r"(*w),
              [even] "=&r"(even), [odd] "=&r"(odd), [low] "=&r"(low), [high] "=&r"(high)
            : [column] "r"(column)
            : "memory");
}

DSP_INLINE void copy(int16_t *to, const int16_t *from, int32_t count)
{
    for (; count >= 16; count -= 16) {
#pragma GCC unroll 8
        for (int32_t k = 0; k < 16; k += 2) {
            dsp_store(to + k, dsp_load(from + k));
        }
        to += 16;
        from += 16;
    }
    for (; count > 0; count -= 2) {
        dsp_store(to, dsp_load(from));
        to += 2;
        from += 2;
    }
}

DSP_INLINE void zero(int16_t *to, int32_t count)
{
    for (; count > 0; count -= 4) {
        dsp_store(to, 0);
        dsp_store(to + 2, 0);
        to += 4;
    }
}

#include "depthwise16_image.h"

/* Results of two channels; bounds are in both halves. */
DSP_INLINE uint32_t two_results(int32_t a, int32_t b, const struct s16_channel *of, uint32_t low, uint32_t high)
{
    uint32_t both, scratch;
    __asm__("smmulr %[a], %[a], %[scale_a]\n\t"
            "smmulr %[b], %[b], %[scale_b]\n\t"
            "ssat %[a], #16, %[a]\n\t"
            "ssat %[b], #16, %[b]\n\t"
            "pkhbt %[both], %[a], %[b], lsl #16\n\t"
            "ssub16 %[scratch], %[both], %[low]\n\t"
            "sel %[both], %[both], %[low]\n\t"
            "ssub16 %[scratch], %[high], %[both]\n\t"
            "sel %[both], %[both], %[high]"
            : [both] "=&r"(both), [scratch] "=&r"(scratch), [a] "+&r"(a), [b] "+&r"(b)
            : [scale_a] "r"(of[0].high), [scale_b] "r"(of[1].high), [low] "r"(low), [high] "r"(high));
    return both;
}

DSP_INLINE void pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                      const struct fl_depthwise16 *p, int32_t height, int32_t width)
{
    const uint32_t low = dsp_low_halves((uint32_t)p->low, (uint32_t)p->low);
    const uint32_t high = dsp_low_halves((uint32_t)p->high, (uint32_t)p->high);
    for (int32_t left = p->channels; left > 0; left -= 4) {
        struct four sums = {(int32_t)of[0].bias, (int32_t)of[1].bias, (int32_t)of[2].bias, (int32_t)of[3].bias};
        const int16_t *line = x;
#pragma GCC unroll 3
        for (int32_t ky = 0; ky < height; ky++) {
            const int16_t *at = line;
#pragma GCC unroll 3
            for (int32_t kx = 0; kx < width; kx++) {
                add_products(&sums, &at, &w, 2 * column);
            }
            line += row;
        }
        const uint32_t ab = two_results(sums.a, sums.b, of, low, high), cd = two_results(sums.c, sums.d, of + 2, low, high);
        if (left >= 4) {
            dsp_store(y, ab);
            dsp_store(y + 2, cd);
        } else {
            y[0] = (int16_t)ab;
            if (left > 1) {
                y[1] = (int16_t)(ab >> 16);
            }
            if (left > 2) {
                y[2] = (int16_t)cd;
            }
        }
        x += 4;
        y += 4;
        of += 4;
    }
}

void arm_dsp_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int16_t *panel, const void *parameters)
{
    d16_image(x, w, channels, y, panel, parameters);
}
