/* Pooling of int16, one pixel of a window at a time: 8 channels, 2 or 1. */
#include "pool_window.h"

enum { WORDS = 4 };

/* Half by half, the smaller element of two words. */
DSP_INLINE void take_smaller(uint32_t *a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub16 %1, %0, %2\n\tsel %0, %2, %0" : "+r"(*a), "=&r"(difference) : "r"(b) : "cc");
}

/* 2 * `words` channels from c on; `words` is a constant, 0 for a single channel. */
DSP_INLINE void channels(const struct window *w, int32_t c, int32_t words, int16_t *y, const struct arm_dsp_pool *p, int is_max)
{
    const int32_t step = p->channels, row_step = p->width * step, pixels = w->rows * w->columns;
    const uint32_t low = (uint16_t)p->low * 0x10001u, high = (uint16_t)p->high * 0x10001u;
    const int16_t *row = (const int16_t *)w->from + c;
    uint32_t larger[WORDS] = {low, low, low, low};
    int32_t sum[2 * WORDS] = {0};
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const int16_t *x = row;
        for (int32_t left = w->columns; left > 0; left--) {
            if (words == 0 && is_max) {
                dsp_take_larger(larger, (uint32_t)x[0]);
            } else if (words == 0) {
                sum[0] += x[0];
            }
#pragma GCC unroll 4
            for (int32_t i = 0; i < words; i++) {
                const uint32_t two = dsp_load(x + 2 * i);
                if (is_max) {
                    dsp_take_larger(&larger[i], two);
                } else {
                    sum[2 * i] += (int16_t)two;
                    sum[2 * i + 1] += (int32_t)two >> 16;
                }
            }
            x += step;
        }
        row += row_step;
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < (words > 0 ? words : 1); i++) {
        uint32_t two = larger[i];
        if (!is_max) {
            const int32_t half = pixels / 2, first = average(sum[2 * i], pixels, half, 0);
            const int32_t second = words > 0 ? average(sum[2 * i + 1], pixels, half, 0) : 0;
            two = dsp_low_halves((uint32_t)first, (uint32_t)second);
            dsp_take_larger(&two, low);
        }
        take_smaller(&two, high);
        if (words > 0) {
            dsp_store(y + c + 2 * i, two);
        } else {
            y[c] = (int16_t)two;
        }
    }
}

DSP_INLINE void pool(const uint8_t *x, int16_t *y, const int32_t *fields, int is_max)
{
    const struct arm_dsp_pool p = *(const struct arm_dsp_pool *)fields; /* local copy: y may alias it */
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        for (int32_t ox = 0; ox < p.out_width; ox++) {
            const struct window w = window_at(x, oy, ox, &p, 2);
            int32_t c = 0;
            for (; c + 2 * WORDS <= p.channels; c += 2 * WORDS) {
                channels(&w, c, WORDS, y, &p, is_max);
            }
            for (; c + 2 <= p.channels; c += 2) {
                channels(&w, c, 1, y, &p, is_max);
            }
            if (c < p.channels) {
                channels(&w, c, 0, y, &p, is_max);
            }
            y += p.channels;
        }
    }
}

void arm_dsp_max_pool_s16(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 1);
}

void arm_dsp_avg_pool_s16(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 0);
}
