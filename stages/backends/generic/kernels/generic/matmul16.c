/* Rows of a product of int16 matrices, two units at a time, with 64-bit sums. */
#include "matmul.h"

#include "requantize.h"

static int16_t wide(int64_t sum, const struct fl_matmul *v)
{
    const int64_t half = (int64_t)1 << (14 - v->shift);
    const int32_t scaled = (int32_t)((sum * v->multiplier + half) >> (15 - v->shift));
    return (int16_t)fl_clamp(scaled, v->low, v->high);
}

/* Two units share the row. */
void fl_matmul_row_s16(const int16_t *x, const int16_t *w, int16_t *y, const void *parameters)
{
    const struct fl_matmul v = *(const struct fl_matmul *)parameters; /* local copy: y may alias it */
    int32_t j = 0;
    for (; j + 2 <= v.units; j += 2) {
        const int16_t *at = w + j * v.w_unit, *row = x;
        int64_t a = 0, b = 0;
        for (int32_t k = 0; k < v.depth; k++, at += v.w_step, row += v.x_step) {
            a += *row * at[0];
            b += *row * at[v.w_unit];
        }
        y[j] = wide(a, &v);
        y[j + 1] = wide(b, &v);
    }
    if (j < v.units) {
        int64_t sum = 0;
        for (int32_t k = 0; k < v.depth; k++) {
            sum += x[k * v.x_step] * w[j * v.w_unit + k * v.w_step];
        }
        y[j] = wide(sum, &v);
    }
}
