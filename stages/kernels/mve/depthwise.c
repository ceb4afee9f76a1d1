/* Depthwise convolution with any window, tap by tap, 16 channels at a time: the arithmetic of depthwise3x3.S, with weights that do not
 * fit int8.
 */
#include "depthwise_turns.h"

/* Vector j holds channels j, j + 4, j + 8, j + 12. */
struct sums {
    int32x4_t v0, v1, v2, v3;
};

/* A row of the window: `taps` taps, step bytes apart in the line. A weight is the sum of two. */
MVE_INLINE void add_taps(struct sums *s, const int8_t *x, const int8_t *w, int32_t taps, int32_t step)
{
    for (; taps > 0; taps--) {
        const int8x16_t a = vld1q_s8(x), b = vld1q_s8(w), more = vld1q_s8(w + GROUP);
        const int16x8_t even = vaddq_s16(vmullbq_int_s8(a, b), vmullbq_int_s8(a, more));
        const int16x8_t odd = vaddq_s16(vmulltq_int_s8(a, b), vmulltq_int_s8(a, more));
        s->v0 = vaddq_s32(s->v0, vmovlbq_s16(even));
        s->v2 = vaddq_s32(s->v2, vmovltq_s16(even));
        s->v1 = vaddq_s32(s->v1, vmovlbq_s16(odd));
        s->v3 = vaddq_s32(s->v3, vmovltq_s16(odd));
        x += step;
        w += 2 * GROUP;
    }
}

/* `params` are the bias of a vector, and 16 and 32 words on its multipliers and rounders. */
MVE_INLINE int32x4_t scale(int32x4_t sum, const int32_t *params)
{
    const int32x4_t t = vqrdmulhq_s32(vaddq_s32(sum, vld1q_s32(params)), vld1q_s32(params + GROUP));
    return vqrdmulhq_s32(vaddq_s32(t, vshrq_n_s32(t, 31)), vld1q_s32(params + 2 * GROUP));
}

MVE_INLINE void put(uint8_t *y, const struct sums *s, const int32_t *params, int32_t channels, const struct mve_depthwise *d)
{
    int16x8_t even = vqmovnbq_s32(vdupq_n_s16(0), scale(s->v0, params));
    int16x8_t odd = vqmovnbq_s32(vdupq_n_s16(0), scale(s->v1, params + 4));
    even = vqaddq_n_s16(vqmovntq_s32(even, scale(s->v2, params + 8)), (int16_t)d->zero_point);
    odd = vqaddq_n_s16(vqmovntq_s32(odd, scale(s->v3, params + 12)), (int16_t)d->zero_point);
    int8x16_t bytes = vqmovntq_s16(vqmovnbq_s16(vdupq_n_s8(0), even), odd);
    bytes = vminq_s8(vmaxq_s8(bytes, vdupq_n_s8((int8_t)d->low)), vdupq_n_s8((int8_t)d->high));
    vst1q_p_u8(y, veorq_u8((uint8x16_t)bytes, vdupq_n_u8((uint8_t)d->image.flip)), vctp8q((uint32_t)channels));
}

void mve_depthwise_wide(const void *x, const int32_t *constants, void *y, int32_t channels, int8_t *lines, const int32_t *fields)
{
    const struct mve_depthwise *const d = (const struct mve_depthwise *)fields;
    const int8_t *const weights = (const int8_t *)constants;
    const int32_t row = d->kernel_x * 2 * GROUP;
    const int32_t *const params = constants + d->kernel_y * row / 4;
    struct window_lines w = {.span = (d->kernel_y - 1) * d->dilation_y + 1, .next = -d->top, .line = 0};
    uint8_t *to = y;
    for (int32_t oy = 0; oy < d->out_height; oy++) {
        const int32_t first = load_lines(lines, &w, x, oy, d, channels);
        for (int32_t ox = 0; ox < d->out_width; ox++) {
            struct sums s = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
            int32_t line = first;
            for (int32_t ky = 0; ky < d->kernel_y; ky++) {
                const int8_t *const at = lines + line * d->image.pitch + ox * d->stride_x * GROUP;
                add_taps(&s, at, weights + ky * row, d->kernel_x, d->dilation_x * GROUP);
                line += d->dilation_y;
                line -= line >= w.span ? w.span : 0;
            }
            put(to, &s, params, channels, d);
            to += d->image.pixel;
        }
    }
}
