/* Windows of a pooling layer, and averages. */
#pragma once

#include "dsp.h"
#include "pool.h"

/* The part of a window that lies inside the image: `rows` times `columns` pixels from `from` on. */
struct window {
    const uint8_t *from;
    int32_t rows, columns;
};

DSP_INLINE struct window window_at(const uint8_t *image, int32_t oy, int32_t ox, const struct arm_dsp_pool *p,
                                   int32_t element_bytes)
{
    const int32_t y = oy * p->stride_y - p->top, x = ox * p->stride_x - p->left;
    const int32_t y0 = y < 0 ? 0 : y, x0 = x < 0 ? 0 : x;
    const int32_t y1 = y + p->kernel_y < p->height ? y + p->kernel_y : p->height;
    const int32_t x1 = x + p->kernel_x < p->width ? x + p->kernel_x : p->width;
    return (struct window){image + (y0 * p->width + x0) * p->channels * element_bytes, y1 - y0, x1 - x0};
}

/* sum / count to the nearest, halves away from zero. */
DSP_INLINE int32_t average(int32_t sum, int32_t count, int32_t half, int is_unsigned)
{
    if (is_unsigned) {
        return (int32_t)((uint32_t)(sum + half) / (uint32_t)count);
    }
    return (sum > 0 ? sum + half : sum - half) / count;
}
