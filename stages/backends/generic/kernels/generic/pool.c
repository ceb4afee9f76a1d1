/* Average and maximum pooling. Only elements inside the image count. */
#include "pool.h"

#include "average.h"
#include "elements.h"
#include "requantize.h"

/* One element: `x` is the first of `rows` by `columns` elements inside the image. The maximum has a register's width: RV64
 * compares 64 bits, and would extend 32 bits each time. */
INLINE uint8_t element(const uint8_t *x, int32_t rows, int32_t columns, const struct fl_pool *v, int is_unsigned,
                       int is_max)
{
    const int32_t row = v->width * v->x_pixel;
    intptr_t largest = is_max ? load(x, is_unsigned) : 0;
    int32_t sum = 0;
    for (int32_t ky = 0; ky < rows; ky++) {
        const uint8_t *p = x + ky * row;
        for (int32_t kx = 0; kx < columns; kx++) {
            const intptr_t value = load(p, is_unsigned);
            if (is_max) {
                largest = value > largest ? value : largest;
            } else {
                sum += (int32_t)value;
            }
            p += v->x_pixel;
        }
    }
    return (uint8_t)fl_clamp(is_max ? (int32_t)largest : average(sum, rows * columns), v->low, v->high);
}

INLINE void pool(const uint8_t *x, uint8_t *y, const struct fl_pool *v, int is_unsigned, int is_max)
{
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        const int32_t y0 = oy * v->stride_y - v->top;
        const int32_t y_first = y0 < 0 ? 0 : y0;
        const int32_t y_end = y0 + v->kernel_height < v->height ? y0 + v->kernel_height : v->height;
        for (int32_t ox = 0; ox < v->out_width; ox++) {
            const int32_t x0 = ox * v->stride_x - v->left;
            const int32_t x_first = x0 < 0 ? 0 : x0;
            const int32_t x_end = x0 + v->kernel_width < v->width ? x0 + v->kernel_width : v->width;
            const uint8_t *p = x + (y_first * v->width + x_first) * v->x_pixel;
            for (int32_t c = 0; c < v->channels; c++) {
                y[c * v->y_channel] =
                    element(p + c * v->x_channel, y_end - y_first, x_end - x_first, v, is_unsigned, is_max);
            }
            y += v->y_pixel;
        }
    }
}

void fl_avg_pool_s8(const int8_t *x, void *y, const void *parameters)
{
    pool((const uint8_t *)x, y, parameters, 0, 0);
}

void fl_avg_pool_u8(const uint8_t *x, void *y, const void *parameters)
{
    pool(x, y, parameters, 1, 0);
}

void fl_max_pool_s8(const int8_t *x, void *y, const void *parameters)
{
    pool((const uint8_t *)x, y, parameters, 0, 1);
}

void fl_max_pool_u8(const uint8_t *x, void *y, const void *parameters)
{
    pool(x, y, parameters, 1, 1);
}
