/* Softmax of one row, in the fixed-point arithmetic of the reference (gemmlowp). */
#include "fixed_point.h"
#include "reciprocal.h"
#include "row_vectors.h"
#include "rows.h"

static void softmax(const void *x, const int32_t *exp, void *y, int32_t count, int32_t top, int32_t lowest)
{
    const uint32_t sum = rvv_exponential_sum(x, exp, count, top); /* Q12.19 */
    const int32_t zeros = fl_leading_zeros(sum), shift = 12 - zeros + 23;
    const int32_t scale = fl_reciprocal((int32_t)((sum << zeros) >> 1));
    /* Parts are below 2^31: 0 if they are shifted by 32. */
    rvv_exponential_parts(x, exp, y, count, top, shift > 31 ? 0 : scale, shift > 31 ? 31 : shift, lowest);
}

void rvv_softmax_s8(const void *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    (void)x_step, (void)y_step;
    softmax(x, exp, y, count, rvv_largest_s8(x, count), -128);
}

void rvv_softmax_u8(const void *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    (void)x_step, (void)y_step;
    softmax(x, exp, y, count, rvv_largest_u8(x, count), 0);
}
