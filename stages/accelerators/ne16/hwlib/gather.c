#include "gather.h"

enum { IN_ROWS, IN_COLUMNS, CHANNELS, ROWS, COLUMNS, HEIGHT, WIDTH, DOWN, RIGHT, ABOVE, LEFT, PADDING };

static uint8_t *copy(uint8_t *to, const uint8_t *from, int32_t count)
{
    while (count-- > 0)
        *to++ = *from++;
    return to;
}

static uint8_t *fill(uint8_t *to, uint8_t value, int32_t count)
{
    while (count-- > 0)
        *to++ = value;
    return to;
}

/* One row of a window: padding, what lies inside of the image, padding. */
static uint8_t *row_of(uint8_t *to, const uint8_t *row, int32_t x, const int32_t *n)
{
    const int32_t before = x < 0 ? (-x < n[WIDTH] ? -x : n[WIDTH]) : 0;
    const int32_t end = x + n[WIDTH] < n[IN_COLUMNS] ? n[WIDTH] : n[IN_COLUMNS] - x;
    const uint8_t value = (uint8_t)n[PADDING];

    to = fill(to, value, before * n[CHANNELS]);
    to = copy(to, row + (x + before) * n[CHANNELS], (end - before) * n[CHANNELS]);
    return fill(to, value, (n[WIDTH] - (end > before ? end : before)) * n[CHANNELS]);
}

void ne16_gather(const uint8_t *input, uint8_t *windows, const int32_t n[12])
{
    const int32_t stride = n[IN_COLUMNS] * n[CHANNELS], width = n[WIDTH] * n[CHANNELS];

    for (int32_t row = 0; row < n[ROWS]; row++)
        for (int32_t column = 0; column < n[COLUMNS]; column++)
            for (int32_t tap = 0; tap < n[HEIGHT]; tap++) {
                const int32_t y = row * n[DOWN] - n[ABOVE] + tap;

                if (y < 0 || y >= n[IN_ROWS])
                    windows = fill(windows, (uint8_t)n[PADDING], width);
                else
                    windows = row_of(windows, input + y * stride, column * n[RIGHT] - n[LEFT], n);
            }
}
