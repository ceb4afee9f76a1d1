#include "few.h"

#include <string.h>

#include "dsp.h"

/* A row of a window: `columns` pixels, with padding filled in. */
static void copy_row(uint8_t *to, const uint8_t *image, int32_t y, int32_t x, const struct arm_dsp_few *v)
{
    const int32_t channels = v->channels, taps = v->kernel_x;
    const uint8_t *const row = image + y * v->width * channels;
    const int32_t width = y >= 0 && y < v->height ? v->width : 0;
    if (v->dilation_x == 1) {
        int32_t first = x < 0 ? -x : 0, last = width - x < taps ? width - x : taps;
        if (last <= first) {
            first = last = 0;
        }
        memset(to, v->fill, (uint32_t)(first * channels));
        memcpy(to + first * channels, row + (x + first) * channels, (uint32_t)((last - first) * channels));
        memset(to + last * channels, v->fill, (uint32_t)((taps - last) * channels));
        return;
    }
    for (int32_t tap = 0; tap < taps; tap++) {
        if (x >= 0 && x < width) {
            memcpy(to, row + x * channels, (uint32_t)channels);
        } else {
            memset(to, v->fill, (uint32_t)channels);
        }
        to += channels;
        x += v->dilation_x;
    }
}

/* All groups' results for `count` windows from x on. */
DSP_INLINE void groups_of(const uint8_t *x, const int32_t *weights, uint8_t *y, const struct arm_dsp_few *v,
                          const struct arm_dsp_few_windows *fields, int32_t count, arm_dsp_few_rows *compute)
{
    for (int32_t group = v->groups; group > 0; group--) {
        int32_t first = 0;
        for (int32_t block = v->blocks; block > 0; block--) {
            const int32_t channel = first < v->last ? first : v->last;
            compute(x, weights, y + channel * fields->y_channel, &fields->units, count);
            weights += v->words;
            first += v->block_channels;
        }
        x += v->group_in;
        y += v->group_out * fields->y_channel;
    }
}

DSP_INLINE void few(const uint8_t *image, const int32_t *weights, uint8_t *y, uint8_t *window, const int32_t *fields,
                    arm_dsp_few_rows *compute)
{
    const struct arm_dsp_few *const v = (const struct arm_dsp_few *)fields;
    const int32_t row_bytes = v->kernel_x * v->channels;
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        const int32_t top = oy * v->stride_y - v->top;
        const int32_t inside = oy >= v->first_y && oy < v->end_y && v->first_x < v->end_x;
        for (int32_t ox = 0; ox < v->out_width; ox++) {
            const int32_t left = ox * v->stride_x - v->left;
            uint8_t *const to = y + ox * v->inside.y_pixel;
            if (inside && ox == v->first_x) {
                const uint8_t *const x = image + (top * v->width + left) * v->channels;
                groups_of(x, weights, to, v, &v->inside, v->end_x - ox, compute);
                ox = v->end_x - 1;
                continue;
            }
            for (int32_t ky = 0; ky < v->kernel_y; ky++) {
                copy_row(window + ky * row_bytes, image, top + ky * v->dilation_y, left, v);
            }
            groups_of(window, weights, to, v, &v->copied, 1, compute);
        }
        y += v->y_row;
    }
}

#define LAYER(kind)                                                                                                                    \
    void arm_dsp_conv##kind(const void *x, const int32_t *weights, void *y, uint8_t *window, const int32_t *fields)                    \
    {                                                                                                                                  \
        few(x, weights, y, window, fields, arm_dsp_few##kind);                                                                         \
    }

#define ROUNDINGS(kind) LAYER(kind##_double) LAYER(kind##_single) LAYER(kind##_long)

ROUNDINGS(1_s8)
ROUNDINGS(2_s8)
ROUNDINGS(3_s8)
ROUNDINGS(4_s8)
ROUNDINGS(1_u8)
ROUNDINGS(2_u8)
ROUNDINGS(3_u8)
ROUNDINGS(4_u8)
