/* One row of x by a panel of w (gemm.c), and the conversion of a sum to an output byte. */
#pragma once

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
    const int32_t scaled = e->single_rounding ? scaled_once(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT])
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
    for (; k >= 4; k -= 4, x += 4, w += 4) {
        acc += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
    }
    for (; k > 0; k--) {
        acc += *x++ * *w++;
    }
    return acc;
}

/* The sums of one row by `count` interleaved columns. They have a register's width: RV64 would extend 32 bits each time. */
static inline __attribute__((always_inline)) void panel_sums(int32_t *sums, const int8_t *x, const int8_t *w, int32_t k,
                                                             int count)
{
    const int8_t *const end = x + k;
    intptr_t acc[FL_PANEL] = {0};
    while (x != end) {
        const intptr_t v = *x++;
#pragma GCC unroll 8
        for (int j = 0; j < count; j++) {
            acc[j] += v * w[j];
        }
        w += count;
    }
#pragma GCC unroll 8
    for (int j = 0; j < count; j++) {
        sums[j] = (int32_t)acc[j];
    }
}

/* One row by all columns. */
ONCE void row_by_columns(struct row r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                         const struct fl_gemm *e)
{
    int32_t sums[FL_PANEL], count;
    for (; columns > 0; columns -= count) {
        count = columns >= FL_PANEL ? FL_PANEL : columns == 6 ? 5 : columns >= 4 ? columns : 1;
        if (count == FL_PANEL) {
            panel_sums(sums, r.x, w, k, FL_PANEL);
        } else if (count == 7) {
            panel_sums(sums, r.x, w, k, 7);
        } else if (count == 5) {
            panel_sums(sums, r.x, w, k, 5);
        } else if (count == 4) {
            panel_sums(sums, r.x, w, k, 4);
        } else {
            sums[0] = dot(r.x, w, k);
        }
        w += count * k;
        for (int32_t j = 0; j < count; j++) {
            finish_1(sums[j], 0, &r, channels, e);
            r.y += e->y_column;
            channels += FL_CHANNEL;
        }
    }
}
