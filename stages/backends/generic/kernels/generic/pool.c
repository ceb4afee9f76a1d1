/* Average and maximum pooling. Only elements inside the image count. */
#include "pool.h"

#include "average.h"
#include "elements.h"
#include "requantize.h"

enum { CHANNELS = 4 }; /* the most channels at a time; averages of so many take much more ROM */

/* `count` channels of one output pixel, neighbours unless `count` is 1; `x` is the first of `rows` by `columns` pixels inside
 * the image. A maximum has a register's width: RV64 compares 64 bits, and would extend 32 bits each time. */
INLINE void pixel(const uint8_t *x, uint8_t *y, int32_t rows, int32_t columns, const struct fl_pool *v, int is_unsigned,
                  int is_max, int count)
{
    const int32_t step = v->x_pixel, row = v->width * step, run = columns * step, taps = rows * columns;
    const int32_t y_step = v->y_channel, low = v->low, high = v->high;
    intptr_t of[CHANNELS];
#pragma GCC unroll 4
    for (int c = 0; c < count; c++) {
        of[c] = is_max ? load(x + c, is_unsigned) : 0;
    }
    for (const uint8_t *const end = x + rows * row; x != end; x += row) {
        for (const uint8_t *p = x, *const row_end = x + run; p != row_end; p += step) {
#pragma GCC unroll 4
            for (int c = 0; c < count; c++) {
                const intptr_t value = load(p + c, is_unsigned);
                of[c] = !is_max ? of[c] + value : value > of[c] ? value : of[c];
            }
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < count; c++) {
        *y = (uint8_t)fl_clamp(is_max ? (int32_t)of[c] : average((int32_t)of[c], taps), low, high);
        y += y_step;
    }
}

/* Where channels are neighbours, `group` at a time. The last group may overlap the previous one. */
INLINE void pool(const uint8_t *x, uint8_t *y, const struct fl_pool *v, int is_unsigned, int is_max, int group)
{
    const int is_many = group == 3 || (v->x_channel == 1 && v->channels >= group); /* three: see maxima */
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        const int32_t y0 = oy * v->stride_y - v->top;
        const int32_t y_first = y0 < 0 ? 0 : y0;
        const int32_t y_end = y0 + v->kernel_height < v->height ? y0 + v->kernel_height : v->height;
        for (int32_t ox = 0; ox < v->out_width; ox++) {
            const int32_t x0 = ox * v->stride_x - v->left;
            const int32_t x_first = x0 < 0 ? 0 : x0;
            const int32_t x_end = x0 + v->kernel_width < v->width ? x0 + v->kernel_width : v->width;
            const int32_t rows = y_end - y_first, columns = x_end - x_first;
            const uint8_t *p = x + (y_first * v->width + x_first) * v->x_pixel;
            for (int32_t c = 0; c < v->channels; c += is_many ? group : 1) {
                if (is_many) {
                    const int32_t at = c + group <= v->channels ? c : v->channels - group;
                    pixel(p + at, y + at * v->y_channel, rows, columns, v, is_unsigned, is_max, group);
                } else {
                    pixel(p + c * v->x_channel, y + c * v->y_channel, rows, columns, v, is_unsigned, is_max, 1);
                }
            }
            y += v->y_pixel;
        }
    }
}

/* Four at a time, or three if that takes no more groups. */
INLINE void maxima(const uint8_t *x, uint8_t *y, const struct fl_pool *v, int is_unsigned)
{
    if (v->x_channel == 1 && v->channels >= 3 && (v->channels + 2) / 3 == (v->channels + 3) / 4) {
        pool(x, y, v, is_unsigned, 1, 3);
    } else {
        pool(x, y, v, is_unsigned, 1, CHANNELS);
    }
}

void fl_avg_pool_s8(const int8_t *x, void *y, const void *parameters)
{
    pool((const uint8_t *)x, y, parameters, 0, 0, CHANNELS / 2);
}

void fl_avg_pool_u8(const uint8_t *x, void *y, const void *parameters)
{
    pool(x, y, parameters, 1, 0, CHANNELS / 2);
}

void fl_max_pool_s8(const int8_t *x, void *y, const void *parameters)
{
    maxima((const uint8_t *)x, y, parameters, 0);
}

void fl_max_pool_u8(const uint8_t *x, void *y, const void *parameters)
{
    maxima(x, y, parameters, 1);
}
