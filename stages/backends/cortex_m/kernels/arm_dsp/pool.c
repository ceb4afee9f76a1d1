#include "pool.h"

#include "bytes_order.h"
#include "pool_window.h"
#include "sums.h"

DSP_INLINE uint32_t clipped(uint32_t bytes, const struct arm_dsp_pool *p, int is_unsigned)
{
    const uint32_t low = (uint8_t)p->low * 0x01010101u, high = (uint8_t)p->high * 0x01010101u;
    return smaller(larger(bytes, low, is_unsigned), high, is_unsigned);
}

DSP_INLINE void store_averages(uint8_t *y, struct sums4 sum, int32_t count, const struct arm_dsp_pool *p, int is_unsigned)
{
    const int32_t half = count / 2;
    const uint32_t a = (uint32_t)average(sum.a, count, half, is_unsigned), b = (uint32_t)average(sum.b, count, half, is_unsigned);
    const uint32_t c = (uint32_t)average(sum.c, count, half, is_unsigned), d = (uint32_t)average(sum.d, count, half, is_unsigned);
    dsp_store(y, clipped(sums_bytes(a, b, c, d), p, is_unsigned));
}

/* Channels in blocks of 16 and 4; the last block of 4 may overlap the block before it. */
DSP_INLINE void average_window(const struct window *w, uint8_t *y, const struct arm_dsp_pool *p, int is_unsigned)
{
    const int32_t channels = p->channels, count = w->rows * w->columns;
    const struct sums_walk walk = {w->rows, p->width * channels, w->columns, channels};
    int32_t c = 0;
    for (; count <= SUMS_MOST && c + 16 <= channels; c += 16) {
        const struct sums_halves sum = sums_of_words(w->from + c, &walk, 4, is_unsigned);
        store_averages(y + c, sums_split(sum.even0, sum.odd0, is_unsigned), count, p, is_unsigned);
        store_averages(y + c + 4, sums_split(sum.even1, sum.odd1, is_unsigned), count, p, is_unsigned);
        store_averages(y + c + 8, sums_split(sum.even2, sum.odd2, is_unsigned), count, p, is_unsigned);
        store_averages(y + c + 12, sums_split(sum.even3, sum.odd3, is_unsigned), count, p, is_unsigned);
    }
    for (; c < channels && channels >= 4; c += 4) {
        const int32_t first = c + 4 <= channels ? c : channels - 4;
        store_averages(y + first, sums_of_four(w->from + first, &walk, is_unsigned), count, p, is_unsigned);
    }
    for (; c < channels; c++) {
        const int32_t mean = average(sums_of_one(w->from + c, &walk, is_unsigned), count, count / 2, is_unsigned);
        y[c] = (uint8_t)(mean < p->low ? p->low : mean > p->high ? p->high : mean);
    }
}

DSP_INLINE void pool(const uint8_t *x, uint8_t *y, const int32_t *fields, int is_unsigned)
{
    const struct arm_dsp_pool p = *(const struct arm_dsp_pool *)fields; /* local copy: y may alias it */
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        for (int32_t ox = 0; ox < p.out_width; ox++) {
            const struct window w = window_at(x, oy, ox, &p, 1);
            average_window(&w, y, &p, is_unsigned);
            y += p.channels;
        }
    }
}

void arm_dsp_avg_pool_s8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 0);
}

void arm_dsp_avg_pool_u8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 1);
}
