/* Rows of a product of matrices, four units at a time: each element of the row is loaded once for all four.
 *
 * The second zero point is applied after the loops: sum of (x - z0) * (w - z1) = sum of (x - z0) * w - z1 * sum of (x - z0).
 */
#include "matmul.h"

#include "elements.h"
#include "rounding.h"

INLINE int8_t finish(int32_t sum, const struct fl_matmul *v)
{
    const int32_t scaled = requantize(sum, v->multiplier, v->shift, v->single_rounding);
    return (int8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
}

/* Literal steps of 1 make a loop for each order of the matrix. `less` is what each sum is lowered by. */
INLINE void four(const int8_t *x, const int8_t *w, int8_t *y, int32_t w_unit, int32_t w_step, int32_t less,
                 const struct fl_matmul *v)
{
    const int8_t *const end = x + v->depth * v->x_step;
    const int32_t x_step = v->x_step, zero = v->zero_point0;
    int32_t a = -less, b = -less, c = -less, d = -less;
    for (; x != end; x += x_step, w += w_step) {
        const int32_t value = *x - zero;
        a += value * w[0];
        b += value * w[w_unit];
        c += value * w[2 * w_unit];
        d += value * w[3 * w_unit];
    }
    y[0] = finish(a, v);
    y[1] = finish(b, v);
    y[2] = finish(c, v);
    y[3] = finish(d, v);
}

static int8_t one(const int8_t *x, const int8_t *w, int32_t less, const struct fl_matmul *v)
{
    int32_t sum = -less;
    for (int32_t k = 0; k < v->depth; k++) {
        sum += (x[k * v->x_step] - v->zero_point0) * w[k * v->w_step];
    }
    return finish(sum, v);
}

static int32_t row_sum(const int8_t *x, const struct fl_matmul *v)
{
    int32_t sum = 0;
    for (int32_t k = 0; k < v->depth; k++) {
        sum += x[k * v->x_step] - v->zero_point0;
    }
    return sum;
}

void fl_matmul_row_s8(const int8_t *x, const int8_t *w, int8_t *y, const void *parameters)
{
    const struct fl_matmul v = *(const struct fl_matmul *)parameters; /* local copy: y may alias it */
    const int32_t less = v.zero_point1 ? v.zero_point1 * row_sum(x, &v) : 0;
    int32_t j = 0;
    for (; j + 4 <= v.units; j += 4) {
        if (v.w_unit == 1) {
            four(x, w + j, y + j, 1, v.w_step, less, &v);
        } else {
            four(x, w + j * v.w_unit, y + j, v.w_unit, 1, less, &v);
        }
    }
    for (; j < v.units; j++) {
        y[j] = one(x, w + j * v.w_unit, less, &v);
    }
}
