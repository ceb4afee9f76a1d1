#include "depthwise_channels.h"

#include "dsp.h"

/* The functions of depthwise_channels.S, which describes them. */
typedef void window(const uint8_t *const *taps, const int32_t *blocks, void *out, const int32_t *fields);

window arm_dsp_channels_s8_near, arm_dsp_channels_s8_near_long, arm_dsp_channels_s8_apart, arm_dsp_channels_s8_apart_long;
window arm_dsp_channels_s8_near_once, arm_dsp_channels_s8_apart_once, arm_dsp_channels_u8_near_once, arm_dsp_channels_u8_apart_once;
window arm_dsp_channels_u8_near, arm_dsp_channels_u8_near_long, arm_dsp_channels_u8_apart, arm_dsp_channels_u8_apart_long;

/* The pixels of a window that lies inside the image. */
static const uint8_t **inside(const uint8_t **to, const uint8_t *row, const struct arm_dsp_channels *v)
{
    const int32_t step = v->dilation_x * v->channels, row_step = v->dilation_y * v->width * v->channels, columns = v->kernel_x;
    for (int32_t ky = v->kernel_y; ky > 0; ky--) {
        const uint8_t *from = row;
#pragma GCC unroll 4
        for (int32_t kx = columns; kx > 0; kx--) {
            *to++ = from;
            from += step;
        }
        row += row_step;
    }
    return to;
}

/* The pixels of any window: its row `y` and column `x` may lie outside the image. */
static const uint8_t **pixels(const uint8_t **to, const uint8_t *image, int32_t y, int32_t x, const uint8_t *outside,
                              const struct arm_dsp_channels *v)
{
    for (int32_t ky = v->kernel_y; ky > 0; ky--) {
        const uint8_t *const row = image + y * v->width * v->channels;
        const int32_t width = y >= 0 && y < v->height ? v->width : 0;
        int32_t column = x;
        for (int32_t kx = v->kernel_x; kx > 0; kx--) {
            *to++ = column >= 0 && column < width ? row + column * v->channels : outside;
            column += v->dilation_x;
        }
        y += v->dilation_y;
    }
    return to;
}

DSP_INLINE void depthwise(const uint8_t *image, const int32_t *blocks, uint8_t *y, const uint8_t *outside, int32_t *list,
                          const int32_t *fields, window *compute)
{
    const struct arm_dsp_channels *const v = (const struct arm_dsp_channels *)fields;
    const int32_t last_y = v->height - (v->kernel_y - 1) * v->dilation_y - 1;
    const int32_t last_x = v->width - (v->kernel_x - 1) * v->dilation_x - 1;
    const uint8_t **const taps = (const uint8_t **)list;
    int32_t row = -v->top;
    for (int32_t oy = v->out_height; oy > 0; oy--) {
        int32_t column = -v->left;
        for (int32_t ox = v->out_width; ox > 0; ox--) {
            const uint8_t **end;
            if (row >= 0 && row <= last_y && column >= 0 && column <= last_x) {
                end = inside(taps, image + (row * v->width + column) * v->channels, v);
            } else {
                end = pixels(taps, image, row, column, outside, v);
            }
            *end = image; /* read if the number of taps is odd; its weights are zero */
            const int32_t *group = blocks;
            uint8_t *to = y;
            for (int32_t results = v->multiplier; results > 0; results--) {
                compute(taps, group, to, &v->pairs);
                group += v->words;
                to += v->y_group;
            }
            y += v->y_pixel;
            column += v->stride_x;
        }
        row += v->stride_y;
    }
}

#define DEPTHWISE(kind)                                                                                                                \
    void arm_dsp_depthwise_channels_##kind(const void *x, const int32_t *blocks, void *y, const void *outside, int32_t *taps,         \
                                           const int32_t *fields)                                                                      \
    {                                                                                                                                  \
        depthwise(x, blocks, y, outside, taps, fields, arm_dsp_channels_##kind);                                                       \
    }

DEPTHWISE(s8_near)
DEPTHWISE(s8_near_long)
DEPTHWISE(s8_near_once)
DEPTHWISE(s8_apart)
DEPTHWISE(s8_apart_long)
DEPTHWISE(s8_apart_once)
DEPTHWISE(u8_near)
DEPTHWISE(u8_near_long)
DEPTHWISE(u8_near_once)
DEPTHWISE(u8_apart)
DEPTHWISE(u8_apart_long)
DEPTHWISE(u8_apart_once)
