/* Convolution and matrix product of 16-bit activations with 8-bit weights, with 64-bit sums. */
#include "conv16.h"

#include "requantize.h"

/* So many products of 23 bits fit an int32. */
enum { CHUNK = 256 };

static int64_t dot(const int16_t *x, const int8_t *w, int32_t count)
{
    int64_t sum = 0;
    while (count > 0) {
        const int32_t some = count < CHUNK ? count : CHUNK;
        int32_t part = 0;
        for (int32_t k = 0; k < some; k++) {
            part += x[k] * w[k];
        }
        sum += part;
        x += some;
        w += some;
        count -= some;
    }
    return sum;
}

/* Taps of a window along an axis that lie inside of the image. */
struct span {
    int32_t from, to;
};

static struct span inside(int32_t start, int32_t dilation, int32_t taps, int32_t size)
{
    const int32_t from = start < 0 ? (dilation - 1 - start) / dilation : 0;
    const int32_t to = start < size ? (size - start + dilation - 1) / dilation : 0;
    return (struct span){from, to < taps ? to : taps};
}

/* Where a window lies: its first row and column, which may be outside of the image, and the taps that are not. */
struct place {
    int32_t row, column;
    struct span rows, columns;
};

static int64_t window(const int16_t *x, const int8_t *w, const struct place *at, const struct fl_conv16 *p)
{
    int64_t sum = 0;
    for (int32_t ky = at->rows.from; ky < at->rows.to; ky++) {
        const int32_t line = (at->row + ky * p->dilation_y) * p->width + at->column;
        const int8_t *const taps = w + ky * p->kernel_width * p->depth;
        for (int32_t kx = at->columns.from; kx < at->columns.to; kx++) {
            const int16_t *const pixel = x + (line + kx * p->dilation_x) * p->channels;
            if (p->depth == 1) {
                sum += *pixel * taps[kx];
            } else {
                sum += dot(pixel, taps + kx * p->depth, p->depth);
            }
        }
    }
    return sum;
}

static int16_t scaled(int64_t sum, int32_t multiplier, int32_t shift, const struct fl_conv16 *p)
{
    const int64_t value = (sum * multiplier + ((int64_t)1 << (14 - shift))) >> (15 - shift);
    return (int16_t)(value < p->low ? p->low : value > p->high ? p->high : value);
}

void fl_conv16(const int16_t *x, const int8_t *w, const int64_t *bias, const int32_t *scales, int16_t *y,
               const void *parameters)
{
    const struct fl_conv16 *p = parameters;
    const int32_t taps = p->kernel_height * p->kernel_width * p->depth;
    for (int32_t oy = 0; oy < p->out_height; oy++) {
        for (int32_t ox = 0; ox < p->out_width; ox++) {
            const int32_t row = oy * p->stride_y - p->top, column = ox * p->stride_x - p->left;
            const struct place at = {row, column, inside(row, p->dilation_y, p->kernel_height, p->height),
                                     inside(column, p->dilation_x, p->kernel_width, p->width)};
            for (int32_t o = 0; o < p->out_channels; o++) {
                const int16_t *group = x + o / p->units * p->depth;
                const int64_t sum = bias[o] + window(group, w + o * taps, &at, p);
                *y++ = scaled(sum, scales[2 * o], scales[2 * o + 1], p);
            }
        }
    }
}

/* The nearest integer within 32 bits, halves away from zero. */
static int32_t nearest(double value)
{
    if (value >= 2147483647.0) {
        return INT32_MAX;
    }
    if (value <= -2147483648.0) {
        return INT32_MIN;
    }
    const int32_t whole = (int32_t)value;
    const double rest = value - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

void fl_dense16(const int16_t *x, const int8_t *w, const int64_t *bias, const double *real, int16_t *y,
                const void *parameters)
{
    const struct fl_dense16 *p = parameters;
    for (int32_t j = 0; j < p->units; j++) {
        const int64_t sum = bias[j] + dot(x, w + j * p->depth, p->depth);
        y[j] = (int16_t)fl_clamp(nearest((double)sum * real[j]), p->low, p->high);
    }
}
