/* Averages, means and maxima of an 8-bit image that comes by bands of rows. */
#include "row_sums.h"

#include "average.h"
#include "elements.h"
#include "rounding.h"

/* Sums, or maxima, of four channels. */
struct four {
    int32_t a, b, c, d;
};

INLINE int32_t joined(int32_t sum, int32_t x, int is_max)
{
    return !is_max ? sum + x : x > sum ? x : sum;
}

INLINE struct four joined_four(struct four s, const uint8_t *x, int is_unsigned, int is_max)
{
    s.a = joined(s.a, load(x, is_unsigned), is_max);
    s.b = joined(s.b, load(x + 1, is_unsigned), is_max);
    s.c = joined(s.c, load(x + 2, is_unsigned), is_max);
    s.d = joined(s.d, load(x + 3, is_unsigned), is_max);
    return s;
}

INLINE struct four loaded(const int32_t *sums)
{
    const struct four s = {sums[0], sums[1], sums[2], sums[3]};
    return s;
}

INLINE void store(int32_t *sums, struct four s)
{
    sums[0] = s.a;
    sums[1] = s.b;
    sums[2] = s.c;
    sums[3] = s.d;
}

/* Eight, four or one channel of all pixels: the sums stay in registers. */
INLINE void eight(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    struct four s = loaded(sums), t = loaded(sums + 4);
    for (; pixels > 0; pixels--) {
        s = joined_four(s, x, is_unsigned, is_max);
        t = joined_four(t, x + 4, is_unsigned, is_max);
        x += channels;
    }
    store(sums, s);
    store(sums + 4, t);
}

INLINE void four(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    struct four s = loaded(sums);
    for (; pixels > 0; pixels--) {
        s = joined_four(s, x, is_unsigned, is_max);
        x += channels;
    }
    store(sums, s);
}

INLINE void one(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    int32_t sum = sums[0];
    for (; pixels > 0; pixels--) {
        sum = joined(sum, load(x, is_unsigned), is_max);
        x += channels;
    }
    sums[0] = sum;
}

INLINE void band(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    int32_t c = 0;
    for (; c + 8 <= channels; c += 8) {
        eight(x + c, sums + c, pixels, channels, is_unsigned, is_max);
    }
    if (c + 4 <= channels) {
        four(x + c, sums + c, pixels, channels, is_unsigned, is_max);
        c += 4;
    }
    for (; c < channels; c++) {
        one(x + c, sums + c, pixels, channels, is_unsigned, is_max);
    }
}

void fl_row_sums_s8(const int8_t *x, int32_t *sums, int32_t pixels, int32_t channels)
{
    band((const uint8_t *)x, sums, pixels, channels, 0, 0);
}

void fl_row_sums_u8(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels)
{
    band(x, sums, pixels, channels, 1, 0);
}

void fl_row_maxima_s8(const int8_t *x, int32_t *maxima, int32_t pixels, int32_t channels)
{
    band((const uint8_t *)x, maxima, pixels, channels, 0, 1);
}

void fl_row_maxima_u8(const uint8_t *x, int32_t *maxima, int32_t pixels, int32_t channels)
{
    band(x, maxima, pixels, channels, 1, 1);
}

void fl_row_averages(const int32_t *sums, void *y, int32_t channels, const void *parameters)
{
    const struct fl_row_averages v = *(const struct fl_row_averages *)parameters;
    uint8_t *const out = y;
    for (int32_t c = 0; c < channels; c++) {
        out[c] = (uint8_t)fl_clamp(average(sums[c], v.count), v.low, v.high);
    }
}

void fl_row_means(const int32_t *sums, void *y, int32_t channels, const void *parameters)
{
    const struct fl_row_means v = *(const struct fl_row_means *)parameters;
    uint8_t *const out = y;
    for (int32_t c = 0; c < channels; c++) {
        const int32_t scaled = requantize(sums[c] - v.offset, v.multiplier, v.shift, v.single_rounding);
        out[c] = (uint8_t)fl_clamp(fl_add_wrapping(scaled, v.zero_point), v.low, v.high);
    }
}
