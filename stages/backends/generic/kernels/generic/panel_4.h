/* Four rows of x by a panel of w (gemm.c), for RISC-V: other cores have too few registers for these sums. */
#pragma once

#include "panel_2.h"

#if defined(__riscv)

/* If the compiler moved loads up, they would need the registers of sums. */
#define UNSCHEDULED __attribute__((noinline, optimize("no-schedule-insns")))

struct four {
    struct pair upper, lower;
};

/* An output byte of a channel that is scaled down with two roundings. */
static inline uint8_t narrowed(int32_t dot, int32_t sum, const int32_t *channel, const struct fl_gemm *e)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], dot - e->weight_zero_point * sum);
    const int32_t y = scaled_down(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(y + e->zero_point, e->low, e->high);
}

/* Column j of four rows. */
static void finish_4(int32_t a, int32_t b, int32_t c, int32_t d, int32_t j, const struct four *r,
                     const int32_t *channels, const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const int32_t at = j * e->y_column;
    if (e->single_rounding || channel[FL_SHIFT] >= 0) {
        finish_1(a, j, &r->upper.a, channels, e);
        finish_1(b, j, &r->upper.b, channels, e);
        finish_1(c, j, &r->lower.a, channels, e);
        finish_1(d, j, &r->lower.b, channels, e);
        return;
    }
    const uint8_t y0 = narrowed(a, r->upper.a.sum, channel, e), y1 = narrowed(b, r->upper.b.sum, channel, e);
    const uint8_t y2 = narrowed(c, r->lower.a.sum, channel, e), y3 = narrowed(d, r->lower.b.sum, channel, e);
    r->upper.a.y[at] = y0;
    r->upper.b.y[at] = y1;
    r->lower.a.y[at] = y2;
    r->lower.b.y[at] = y3;
}

#if UINTPTR_MAX > UINT32_MAX

static inline int32_t lower_sum(uint64_t sums)
{
    return (int32_t)(uint32_t)sums;
}

static inline int32_t upper_sum(uint64_t sums)
{
    return (int32_t)(uint32_t)((sums - (uint64_t)(int64_t)lower_sum(sums)) >> 32);
}

static void split_4(uint64_t ab, uint64_t cd, int32_t j, const struct four *r, const int32_t *channels,
                    const struct fl_gemm *e)
{
    finish_4(lower_sum(ab), upper_sum(ab), lower_sum(cd), upper_sum(cd), j, r, channels, e);
}

/* Products of column j in two words of rows. */
#define MULTIPLY_PAIR(j)                   \
    a##j += x * (uint64_t)(int64_t)w[j];   \
    b##j += z * (uint64_t)(int64_t)w[j];

/* Two pairs of rows at once: each k loads 12 bytes for 32 products. */
UNSCHEDULED static void panel_4(const struct four *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x0 = r->upper.a.x, *x1 = r->upper.b.x, *x2 = r->lower.a.x, *x3 = r->lower.b.x;
    const int8_t *const end = x0 + k;
    uint64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    uint64_t b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0, b6 = 0, b7 = 0;
    while (x0 != end) {
        const uint64_t x = (uint64_t)(int64_t)*x0++ + ((uint64_t)(int64_t)*x1++ << 32);
        const uint64_t z = (uint64_t)(int64_t)*x2++ + ((uint64_t)(int64_t)*x3++ << 32);
        EACH_COLUMN(MULTIPLY_PAIR)
        w += FL_PANEL;
    }
#define SPLIT_4(j) split_4(a##j, b##j, j, r, channels, e);
    EACH_COLUMN(SPLIT_4)
}

#else

/* Half a panel: each k loads 8 bytes for 16 products. */
UNSCHEDULED static void half_4(const struct four *r, const int8_t *w, int32_t k, int32_t j, const int32_t *channels,
                   const struct fl_gemm *e)
{
    const int8_t *x0 = r->upper.a.x, *x1 = r->upper.b.x, *x2 = r->lower.a.x, *x3 = r->lower.b.x;
    const int8_t *const end = x0 + k;
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    int32_t c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#pragma GCC unroll 2
    while (x0 != end) {
        const int32_t t = *x0++, u = *x1++, v = *x2++, z = *x3++;
        a0 += t * w[0];
        b0 += u * w[0];
        c0 += v * w[0];
        d0 += z * w[0];
        a1 += t * w[1];
        b1 += u * w[1];
        c1 += v * w[1];
        d1 += z * w[1];
        a2 += t * w[2];
        b2 += u * w[2];
        c2 += v * w[2];
        d2 += z * w[2];
        a3 += t * w[3];
        b3 += u * w[3];
        c3 += v * w[3];
        d3 += z * w[3];
        w += FL_PANEL;
    }
    finish_4(a0, b0, c0, d0, j, r, channels, e);
    finish_4(a1, b1, c1, d1, j + 1, r, channels, e);
    finish_4(a2, b2, c2, d2, j + 2, r, channels, e);
    finish_4(a3, b3, c3, d3, j + 3, r, channels, e);
}

UNSCHEDULED static void panel_4(const struct four *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    half_4(r, w, k, 0, channels, e);
    half_4(r, w + FL_PANEL / 2, k, FL_PANEL / 2, channels, e);
}

#endif

#endif
