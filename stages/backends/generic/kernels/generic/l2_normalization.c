/* A row divided by its Euclidean norm, in the fixed-point arithmetic of the reference; outputs have the scale 1/128. */
#include "l2_normalization.h"

#include "elements.h"
#include "fixed_point.h"
#include "requantize.h"

struct scale {
    int32_t multiplier, shift;
};

/* 1 / sqrt(n) for n > 1 as multiplier * 2^(shift - 31): five steps of Newton and Raphson in Q3.28. */
static struct scale inverse_square_root(int32_t n)
{
    int32_t shift = 11;
    while (n >= 1 << 29) {
        n /= 4;
        shift++;
    }
    const int32_t pairs = (fl_leading_zeros((uint32_t)n) - 1) / 2 - 1;
    const int32_t half = fl_divide_by_pot((n << (2 * pairs)) >> 1, 1);
    int32_t r = 1 << 28;
    for (int step = 0; step < 5; step++) {
        const int32_t cube = fl_saturate((int64_t)fl_high_mul(fl_high_mul(r, r), r) * 64);
        r = fl_saturate(((int64_t)fl_high_mul(3 << 27, r) - fl_high_mul(half, cube)) * 8);
    }
    const int32_t multiplier = fl_high_mul(r, 1518500250); /* sqrt(1/2) in Q0.31 */
    shift -= pairs;
    if (shift < 0) {
        return (struct scale){(int32_t)((uint32_t)multiplier << -shift), 0};
    }
    return (struct scale){multiplier, -shift};
}

INLINE void normalize(const uint8_t *x, uint8_t *y, int32_t count, int32_t x_step, int32_t y_step, int32_t zero_point,
                      int is_unsigned)
{
    int32_t squares = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t d = (is_unsigned ? x[i * x_step] : (int8_t)x[i * x_step]) - zero_point;
        squares = fl_add_wrapping(squares, d * d);
    }
    const struct scale s = squares <= 1 ? (struct scale){INT32_MAX, 0} : inverse_square_root(squares);
    for (int32_t i = 0; i < count; i++) {
        const int32_t d = (is_unsigned ? x[i * x_step] : (int8_t)x[i * x_step]) - zero_point;
        /* The reference scales by 128 before the product for uint8, and in the shift for int8. */
        const int32_t value = is_unsigned ? fl_requantize_double(128 * d, s.multiplier, s.shift) + 128
                                          : fl_requantize_double(d, s.multiplier, s.shift + 7);
        y[i * y_step] = (uint8_t)(is_unsigned ? fl_clamp(value, 0, 255) : fl_clamp(value, -128, 127));
    }
}

void fl_l2_normalize_s8(const int8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point)
{
    normalize((const uint8_t *)x, y, count, x_step, y_step, input_zero_point, 0);
}

void fl_l2_normalize_u8(const uint8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point)
{
    normalize(x, y, count, x_step, y_step, input_zero_point, 1);
}
