/* Four channels at a time. A word of weights has one tap of these channels, in the order 0, 2, 1, 3. */
#include "depthwise16.h"

#include "dsp.h"

#define D16_GROUP 4
#define D16_PIXEL pixel
#include "depthwise16_clipped.h"

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

/* The same for the last 1 to 3 channels; the weights of the missing channels are 0. */
DSP_INLINE void add_products_of(int32_t channels, struct four *sums, const int16_t **x, const int8_t **w, int32_t column)
{
    const uint32_t weights = dsp_load(*w), low = channels > 1 ? dsp_load(*x) : (uint16_t)(*x)[0];
    sums->a += (int16_t)low * (int8_t)weights;
    if (channels > 1) {
        sums->b += ((int32_t)low >> 16) * (int8_t)(weights >> 16);
    }
    if (channels > 2) {
        sums->c += (*x)[2] * (int8_t)(weights >> 8);
    }
    *x = (const int16_t *)((const char *)*x + column);
    *w += 4;
}

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

/* The taps of up to four channels. */
DSP_INLINE struct four sums_of(int32_t channels, const int16_t *x, int32_t row, int32_t column, const int8_t **w,
                               const struct s16_channel *of, struct d16_taps t)
{
    struct four sums = {(int32_t)of[0].bias, (int32_t)of[1].bias, (int32_t)of[2].bias, (int32_t)of[3].bias};
#pragma GCC unroll 3
    for (int32_t ky = 0; ky < t.rows; ky++) {
        const int16_t *at = x;
#pragma GCC unroll 3
        for (int32_t kx = 0; kx < t.columns; kx++) {
            if (channels >= 4) {
                add_products(&sums, &at, w, 2 * column);
            } else {
                add_products_of(channels, &sums, &at, w, 2 * column);
            }
        }
        x += row;
        *w += t.row_gap;
    }
    return sums;
}

DSP_INLINE void pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                      const struct fl_depthwise16 *p, struct d16_taps t)
{
    const uint32_t low = dsp_low_halves((uint32_t)p->low, (uint32_t)p->low);
    const uint32_t high = dsp_low_halves((uint32_t)p->high, (uint32_t)p->high);
    for (int32_t left = p->channels - t.rest; left > 0; left -= 4) {
        const struct four sums = sums_of(4, x, row, column, &w, of, t);
        dsp_store(y, two_results(sums.a, sums.b, of, low, high));
        dsp_store(y + 2, two_results(sums.c, sums.d, of + 2, low, high));
        w += t.group_gap;
        x += 4;
        y += 4;
        of += 4;
    }
    if (t.rest == 3) {
        const struct four sums = sums_of(3, x, row, column, &w, of, t);
        dsp_store(y, two_results(sums.a, sums.b, of, low, high));
        y[2] = (int16_t)two_results(sums.c, sums.d, of + 2, low, high);
    } else if (t.rest == 2) {
        const struct four sums = sums_of(2, x, row, column, &w, of, t);
        dsp_store(y, two_results(sums.a, sums.b, of, low, high));
    } else if (t.rest == 1) {
        const struct four sums = sums_of(1, x, row, column, &w, of, t);
        y[0] = (int16_t)two_results(sums.a, sums.b, of, low, high);
    }
}

void arm_dsp_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, const void *parameters)
{
    d16_image(x, w, channels, y, parameters);
}
