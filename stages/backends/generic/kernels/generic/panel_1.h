/* One row of x by a panel of w (gemm.c), and the conversion of a sum to an output byte. */
#ifndef FIRMLINE_GENERIC_PANEL_1_H
#define FIRMLINE_GENERIC_PANEL_1_H

#include "channels.h"
#include "gemm.h"
#include "scaling.h"

/* Not inlined on RISC-V, where blocks of four and of six rows call these functions too. */
#if defined(__riscv)
#define ONCE static __attribute__((noinline))
#else
#define ONCE static
#endif

/* One output byte; int8 and uint8 differ only in the bounds. `sum` is the sum of the row of x, for weights with a zero
 * point. */
static inline __attribute__((always_inline)) uint8_t output(int32_t dot, int32_t sum, const int32_t *channel,
                                                            const struct fl_gemm *e)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], dot - e->weight_zero_point * sum);
    const int32_t scaled = e->single_rounding ? fl_requantize_single(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT])
                                              : scaled_twice(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, e->zero_point), e->low, e->high);
}

/* A row of x, its sum, and where its results go. */
struct row {
    const int8_t *x;
    int32_t sum;
    uint8_t *y;
};

struct pair {
    struct row a, b;
};

/* Column j of one row. */
ONCE void finish_1(int32_t dot, int32_t j, const struct row *r, const int32_t *channels, const struct fl_gemm *e)
{
    r->y[j * e->y_column] = output(dot, r->sum, channels + j * FL_CHANNEL, e);
}

static int32_t sum_of(const int8_t *x, int32_t k)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < k; i++) {
        sum += x[i];
    }
    return sum;
}

static int32_t dot(const int8_t *x, const int8_t *w, int32_t k)
{
    int32_t acc = 0;
    for (int32_t i = 0; i < k; i++) {
        acc += x[i] * w[i];
    }
    return acc;
}

/* One row by a panel. */
ONCE void panel_1(const struct row *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x = r->x;
    const int8_t *const end = x + k;
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    while (x != end) {
        const int32_t v = *x++;
        a0 += v * w[0];
        a1 += v * w[1];
        a2 += v * w[2];
        a3 += v * w[3];
        a4 += v * w[4];
        a5 += v * w[5];
        a6 += v * w[6];
        a7 += v * w[7];
        w += FL_PANEL;
    }
    finish_1(a0, 0, r, channels, e);
    finish_1(a1, 1, r, channels, e);
    finish_1(a2, 2, r, channels, e);
    finish_1(a3, 3, r, channels, e);
    finish_1(a4, 4, r, channels, e);
    finish_1(a5, 5, r, channels, e);
    finish_1(a6, 6, r, channels, e);
    finish_1(a7, 7, r, channels, e);
}

#endif
