/* Pooling, one pixel of a window at a time: maxima of 64 or 16 channels, sums of 16 or 8. */
#include "pool.h"

#include "bytes.h"
#include "pool_mean.h"
#include "pool_window.h"

struct maxima {
    uint8x16_t a, b, c, d;
};

#define MAXIMA_64(type)                                                                                                \
    ROW("vldrb.8 %q[x], [%[at]]\n"                                                                                     \
        "vldrb.8 %q[z], [%[at], #16]\n"                                                                                \
        "vmax." type " %q[a], %q[a], %q[x]\n"                                                                          \
        "vldrb.8 %q[x], [%[at], #32]\n"                                                                                \
        "vmax." type " %q[b], %q[b], %q[z]\n"                                                                          \
        "vldrb.8 %q[z], [%[at], #48]\n"                                                                                \
        "vmax." type " %q[c], %q[c], %q[x]\n"                                                                          \
        "vmax." type " %q[d], %q[d], %q[z]\n",                                                                         \
        [a] "+w"(m.a), [b] "+w"(m.b), [c] "+w"(m.c), [d] "+w"(m.d), [x] "=&w"(x), [z] "=&w"(z))

/* The maximum of 64 channels and of `low`. */
MVE_INLINE struct maxima maxima_of_64(const struct window *w, int32_t c, uint8x16_t low, int is_signed)
{
    struct maxima m = {low, low, low, low};
    uint8x16_t x, z;
    const uint8_t *row = w->from + c;
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const uint8_t *at = row;
        if (is_signed) {
            MAXIMA_64("s8");
        } else {
            MAXIMA_64("u8");
        }
        row += w->row_step;
    }
    return m;
}

#define MAXIMA_16(type) ROW("vldrb.8 %q[x], [%[at]]\nvmax." type " %q[m], %q[m], %q[x]\n", [m] "+w"(m), [x] "=&w"(x))
#define MAXIMA_OF(channels, type)                                                                                      \
    ROW_OF(channels, "vldrbt.8 %q[x], [%[at]]\nvmax." type " %q[m], %q[m], %q[x]\n", [m] "+w"(m), [x] "=&w"(x))

/* The maximum of 16 channels and of `low`. With `some` only the channels of a predicate are loaded. */
MVE_INLINE uint8x16_t maxima_of_16(const struct window *w, int32_t c, uint8x16_t low, int some, mve_pred16_t channels,
                                   int is_signed)
{
    uint8x16_t m = low, x;
    const uint8_t *row = w->from + c;
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const uint8_t *at = row;
        if (some && is_signed) {
            MAXIMA_OF(channels, "s8");
        } else if (some) {
            MAXIMA_OF(channels, "u8");
        } else if (is_signed) {
            MAXIMA_16("s8");
        } else {
            MAXIMA_16("u8");
        }
        row += w->row_step;
    }
    return m;
}

MVE_INLINE uint8x16_t smaller(uint8x16_t a, uint8x16_t b, int is_signed)
{
    return is_signed ? (uint8x16_t)vminq_s8((int8x16_t)a, (int8x16_t)b) : vminq_u8(a, b);
}

/* Channels in blocks of 64 and 16; the last block of 16 may overlap the block before it. */
MVE_INLINE void max_window(const struct window *w, uint8_t *y, const struct mve_pool *p, int is_signed)
{
    const uint8x16_t low = vdupq_n_u8((uint8_t)p->low), high = vdupq_n_u8((uint8_t)p->high);
    const int32_t channels = p->channels;
    int32_t c = 0;
    for (; c + 64 <= channels; c += 64) {
        const struct maxima m = maxima_of_64(w, c, low, is_signed);
        vstrbq_u8(y + c, smaller(m.a, high, is_signed));
        vstrbq_u8(y + c + 16, smaller(m.b, high, is_signed));
        vstrbq_u8(y + c + 32, smaller(m.c, high, is_signed));
        vstrbq_u8(y + c + 48, smaller(m.d, high, is_signed));
    }
    if (channels < 16) {
        const mve_pred16_t some = vctp8q((uint32_t)channels);
        vstrbq_p_u8(y, smaller(maxima_of_16(w, 0, low, 1, some, is_signed), high, is_signed), some);
        return;
    }
    for (; c < channels; c += 16) {
        const int32_t first = c + 16 <= channels ? c : channels - 16;
        vstrbq_u8(y + first, smaller(maxima_of_16(w, first, low, 0, 0, is_signed), high, is_signed));
    }
}

struct sums {
    uint16x8_t a, b;
};

#define SUMS_16(type)                                                                                                  \
    ROW("vldrb." type " %q[x], [%[at]]\n"                                                                              \
        "vldrb." type " %q[z], [%[at], #8]\n"                                                                          \
        "vadd.i16 %q[a], %q[a], %q[x]\n"                                                                               \
        "vadd.i16 %q[b], %q[b], %q[z]\n",                                                                              \
        [a] "+w"(s.a), [b] "+w"(s.b), [x] "=&w"(x), [z] "=&w"(z))

/* Of 16 channels. */
MVE_INLINE struct sums sums_of_16(const struct window *w, int32_t c, int is_signed)
{
    struct sums s = {vdupq_n_u16(0), vdupq_n_u16(0)};
    uint16x8_t x, z;
    const uint8_t *row = w->from + c;
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const uint8_t *at = row;
        if (is_signed) {
            SUMS_16("s16");
        } else {
            SUMS_16("u16");
        }
        row += w->row_step;
    }
    return s;
}

#define SUMS_OF(channels, type)                                                                                        \
    ROW_OF(channels, "vldrbt." type " %q[x], [%[at]]\nvadd.i16 %q[s], %q[s], %q[x]\n", [s] "+w"(s), [x] "=&w"(x))

/* The sums of up to 8 channels. */
MVE_INLINE uint16x8_t sums_of_8(const struct window *w, int32_t c, mve_pred16_t channels, int is_signed)
{
    uint16x8_t s = vdupq_n_u16(0), x;
    const uint8_t *row = w->from + c;
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const uint8_t *at = row;
        if (is_signed) {
            SUMS_OF(channels, "s16");
        } else {
            SUMS_OF(channels, "u16");
        }
        row += w->row_step;
    }
    return s;
}

/* sum / count, halves away from zero, within bounds. */
MVE_INLINE uint16x8_t mean(uint16x8_t sum, const struct divisor *d, const struct mve_pool *p, int is_signed)
{
    const uint16x8_t q = quotient(sum, d, is_signed);
    const int16x8_t low = vdupq_n_s16((int16_t)p->low), high = vdupq_n_s16((int16_t)p->high);
    return (uint16x8_t)vminq_s16(vmaxq_s16((int16x8_t)q, low), high);
}

/* Channels in blocks of 16; the last block may overlap the one before it. Fewer than 16 channels are in blocks of 8. */
MVE_INLINE void average_window(struct window *w, uint8_t *y, const struct mve_pool *p, int is_signed)
{
    const int32_t channels = p->channels;
    if (w->rows * w->columns == 1) {
        w->columns = 2; /* counts the same pixel twice */
        w->step = 0;
    }
    const struct divisor d = divisor_of(w->rows * w->columns);
    if (channels < 16) {
        for (int32_t c = 0; c < channels; c += 8) {
            const mve_pred16_t some = vctp16q((uint32_t)(channels - c));
            vstrbq_p_u16(y + c, mean(sums_of_8(w, c, some, is_signed), &d, p, is_signed), some);
        }
        return;
    }
    for (int32_t c = 0; c < channels; c += 16) {
        const int32_t first = c + 16 <= channels ? c : channels - 16;
        const struct sums s = sums_of_16(w, first, is_signed);
        vstrbq_u16(y + first, mean(s.a, &d, p, is_signed));
        vstrbq_u16(y + first + 8, mean(s.b, &d, p, is_signed));
    }
}

MVE_INLINE void pool(const uint8_t *x, uint8_t *y, const int32_t *fields, int is_max, int is_signed)
{
    const struct mve_pool p = *(const struct mve_pool *)fields; /* local copy: y may alias it */
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        for (int32_t ox = 0; ox < p.out_width; ox++) {
            struct window w = window_at(x, oy, ox, &p, 1);
            if (is_max) {
                max_window(&w, y, &p, is_signed);
            } else {
                average_window(&w, y, &p, is_signed);
            }
            y += p.channels;
        }
    }
}

void mve_max_pool_s8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 1, 1);
}

void mve_max_pool_u8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 1, 0);
}

void mve_avg_pool_s8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 0, 1);
}

void mve_avg_pool_u8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, fields, 0, 0);
}
