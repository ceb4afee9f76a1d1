/* Two rows of x by a panel of w (gemm.c). */
#pragma once

#include "panel_1.h"

#if UINTPTR_MAX > UINT32_MAX || !defined(__riscv)

/* Column j of two rows. */
static void finish_2(int32_t dot_a, int32_t dot_b, int32_t j, const struct pair *r, const int32_t *channels,
                     const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const uint8_t a = output(dot_a, r->a.sum, channel, e);
    const uint8_t b = output(dot_b, r->b.sum, channel, e);
    r->a.y[j * e->y_column] = a;
    r->b.y[j * e->y_column] = b;
}

#endif

#if UINTPTR_MAX > UINT32_MAX

/* On 64-bit machines one multiplication serves two rows: with x = x0 + x1 * 2^32, x * w is both products, and a sum of
 * them holds both sums. The lower sum is the lower half. Subtracting it corrects any borrow and leaves the upper sum.
 *
 *              w0  w1  w2  w3  w4  w5  w6  w7
 *        x     a0  a1  a2  a3  a4  a5  a6  a7      each k loads 10 bytes for 16 products
 */
static void split(uint64_t sums, int32_t j, const struct pair *r, const int32_t *channels, const struct fl_gemm *e)
{
    const int32_t lower = (int32_t)(uint32_t)sums;
    const int32_t upper = (int32_t)(uint32_t)((sums - (uint64_t)(int64_t)lower) >> 32);
    finish_2(lower, upper, j, r, channels, e);
}

static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x0 = r->a.x, *x1 = r->b.x;
    const int8_t *const end = x0 + k;
    uint64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    while (x0 != end) {
        const uint64_t x = (uint64_t)(int64_t)*x0++ + ((uint64_t)(int64_t)*x1++ << 32);
#define MULTIPLY(j) a##j += x * (uint64_t)(int64_t)w[j];
        EACH_COLUMN(MULTIPLY)
        w += FL_PANEL;
    }
#define SPLIT(j) split(a##j, j, r, channels, e);
    EACH_COLUMN(SPLIT)
}

#elif defined(__riscv)

/* Most rows are computed four at a time, below. */
static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    row_by_columns(r->a, w, FL_PANEL, k, channels, e);
    row_by_columns(r->b, w, FL_PANEL, k, channels, e);
}

#else

/* On 32-bit machines half a panel at a time, as many sums as there are registers for:
 *
 *              w0   w1   w2   w3
 *        x0   a00  a01  a02  a03      each k loads 6 bytes for 8 products
 *        x1   a10  a11  a12  a13
 */
static void half(const struct pair *r, const int8_t *w, int32_t k, int32_t j, const int32_t *channels,
                 const struct fl_gemm *e)
{
    const int8_t *x0 = r->a.x, *x1 = r->b.x;
    const int8_t *const end = x0 + k;
    int32_t a00 = 0, a01 = 0, a02 = 0, a03 = 0;
    int32_t a10 = 0, a11 = 0, a12 = 0, a13 = 0;
    while (x0 != end) {
        const int32_t u = *x0++, v = *x1++;
        a00 += u * w[0];
        a10 += v * w[0];
        a01 += u * w[1];
        a11 += v * w[1];
        a02 += u * w[2];
        a12 += v * w[2];
        a03 += u * w[3];
        a13 += v * w[3];
        w += FL_PANEL;
    }
    finish_2(a00, a10, j, r, channels, e);
    finish_2(a01, a11, j + 1, r, channels, e);
    finish_2(a02, a12, j + 2, r, channels, e);
    finish_2(a03, a13, j + 3, r, channels, e);
}

static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    half(r, w, k, 0, channels, e);
    half(r, w + FL_PANEL / 2, k, FL_PANEL / 2, channels, e);
}

#endif
