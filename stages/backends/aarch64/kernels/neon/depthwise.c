/* Depthwise convolution with any window, 8 channels of an NHWC image at a time. Taps outside of the image are skipped. */
#include "depthwise.h"

#include <stddef.h>

/* Eight activations without their zero point. */
NEON_INLINE int16x8_t centred(const uint8_t *x, uint8x8_t zero_point, int is_unsigned)
{
    if (is_unsigned) {
        return vreinterpretq_s16_u16(vsubl_u8(vld1_u8(x), zero_point));
    }
    return vsubl_s8(vreinterpret_s8_u8(vld1_u8(x)), vreinterpret_s8_u8(zero_point));
}

/* Taps of a window along one axis. The first tap is at `start`; taps [first, end) are inside the image. */
struct range {
    int32_t first, end;
};

static inline struct range inside(int32_t start, int32_t taps, int32_t dilation, int32_t size)
{
    struct range found = {0, taps};
    while (found.first < taps && start + found.first * dilation < 0) {
        found.first++;
    }
    while (found.end > found.first && start + (found.end - 1) * dilation >= size) {
        found.end--;
    }
    return found;
}

NEON_INLINE void output(const uint8_t *x, const int16_t *weights, const int32_t *params, uint8_t *y, struct range rows,
                        struct range columns, const struct neon_depthwise *g, int is_unsigned)
{
    const uint8x8_t zero_point = vld1_u8(g->fill);
    const ptrdiff_t step = (ptrdiff_t)g->dilation_x * g->pixel;
    int32x4_t low = vld1q_s32(params), high = vld1q_s32(params + 4);
    for (int32_t ky = rows.first; ky < rows.end; ky++) {
        const uint8_t *from = x + (ptrdiff_t)ky * g->dilation_y * g->width * g->pixel + columns.first * step;
        const int16_t *w = weights + (ky * g->kernel_width + columns.first) * 8;
        for (int32_t left = columns.end - columns.first; left > 0; left--) {
            const int16x8_t value = centred(from, zero_point, is_unsigned), weight = vld1q_s16(w);
            low = vmlal_s16(low, vget_low_s16(value), vget_low_s16(weight));
            high = vmlal_high_s16(high, value, weight);
            from += step;
            w += 8;
        }
    }
    low = neon_scale(low, vld1q_s32(params + 8), vld1q_s32(params + 16), g->mode);
    high = neon_scale(high, vld1q_s32(params + 12), vld1q_s32(params + 20), g->mode);
    vst1_u8(y, neon_narrow_8(low, high, &g->output));
}

NEON_INLINE void image(const uint8_t *x, const int16_t *weights, const int32_t *params, uint8_t *y,
                       const struct neon_depthwise *g, int is_unsigned)
{
    for (int32_t oy = 0; oy < g->out_height; oy++) {
        const int32_t iy = oy * g->stride_y - g->top;
        const struct range rows = inside(iy, g->kernel_height, g->dilation_y, g->height);
        for (int32_t ox = 0; ox < g->out_width; ox++) {
            const int32_t ix = ox * g->stride_x - g->left;
            const struct range columns = inside(ix, g->kernel_width, g->dilation_x, g->width);
            const uint8_t *first = x + ((ptrdiff_t)iy * g->width + ix) * g->pixel;
            output(first, weights, params, y, rows, columns, g, is_unsigned);
            y += g->pixel;
        }
    }
}

void neon_depthwise_s8(const int8_t *x, const int16_t *weights, const int32_t *params, void *y, const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 0);
}

void neon_depthwise_u8(const uint8_t *x, const int16_t *weights, const int32_t *params, void *y, const void *parameters)
{
    image(x, weights, params, y, parameters, 1);
}
