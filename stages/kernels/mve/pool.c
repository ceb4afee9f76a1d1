/* Pooling: a window's pixels one after the other, 16 channels (maxima) or 8 (sums of 16 bits) at a time. */
#include "pool.h"

#include "bytes.h"

/* The part of a window that lies inside the image: `rows` times `columns` pixels from `from` on. */
struct window {
    const uint8_t *from;
    int32_t rows, columns;
};

MVE_INLINE struct window window_at(const uint8_t *image, int32_t oy, int32_t ox, const struct mve_pool *p)
{
    const int32_t y = oy * p->stride_y - p->top, x = ox * p->stride_x - p->left;
    const int32_t y0 = y < 0 ? 0 : y, x0 = x < 0 ? 0 : x;
    const int32_t y1 = y + p->kernel_y < p->height ? y + p->kernel_y : p->height;
    const int32_t x1 = x + p->kernel_x < p->width ? x + p->kernel_x : p->width;
    return (struct window){image + (y0 * p->width + x0) * p->channels, y1 - y0, x1 - x0};
}

/* Maxima of up to 16 channels. */
MVE_INLINE uint8x16_t maxima(const uint8_t *from, const struct window *w, const struct mve_pool *p, mve_pred16_t channels,
                             int is_signed)
{
    uint8x16_t most = vldrbq_z_u8(from, channels);
    for (int32_t row = w->rows; row > 0; row--) {
        const uint8_t *at = from;
        for (int32_t column = w->columns; column > 0; column--) {
            const uint8x16_t x = vldrbq_z_u8(at, channels);
            most = is_signed ? (uint8x16_t)vmaxq_s8((int8x16_t)most, (int8x16_t)x) : vmaxq_u8(most, x);
            at += p->channels;
        }
        from += p->width * p->channels;
    }
    return most;
}

MVE_INLINE uint8x16_t clip(uint8x16_t x, const struct mve_pool *p, int is_signed)
{
    if (is_signed) {
        const int8x16_t low = vdupq_n_s8((int8_t)p->low), high = vdupq_n_s8((int8_t)p->high);
        return (uint8x16_t)vminq_s8(vmaxq_s8((int8x16_t)x, low), high);
    }
    return vminq_u8(vmaxq_u8(x, vdupq_n_u8((uint8_t)p->low)), vdupq_n_u8((uint8_t)p->high));
}

/* Sums of up to 8 channels as 16 bits, signed or not as the activations are. */
MVE_INLINE int16x8_t sums(const uint8_t *from, const struct window *w, const struct mve_pool *p, mve_pred16_t channels,
                          int is_signed)
{
    int16x8_t sum = vdupq_n_s16(0);
    for (int32_t row = w->rows; row > 0; row--) {
        const uint8_t *at = from;
        for (int32_t column = w->columns; column > 0; column--) {
            sum = vaddq_s16(sum, is_signed ? vldrbq_z_s16((const int8_t *)at, channels)
                                           : (int16x8_t)vldrbq_z_u16(at, channels));
            at += p->channels;
        }
        from += p->width * p->channels;
    }
    return sum;
}

/* sum / count: 2 * (|sum| + count / 2) times 2^30 / count, rounded up, over 2^31. Both errors are too small for the last bit. */
MVE_INLINE int32x4_t mean(int32x4_t sum, int32_t count, int32_t reciprocal, const struct mve_pool *p)
{
    const int32x4_t sign = vshrq_n_s32(sum, 31);
    const int32x4_t twice = vshlq_n_s32(vaddq_n_s32(vabsq_s32(sum), count / 2), 1);
    const int32x4_t size = vqdmulhq_n_s32(twice, reciprocal);
    return vminq_s32(vmaxq_s32(vsubq_s32(veorq_s32(size, sign), sign), vdupq_n_s32(p->low)), vdupq_n_s32(p->high));
}

MVE_INLINE void average_window(const struct window *w, uint8_t *y, const struct mve_pool *p, int is_signed)
{
    const int32_t count = w->rows * w->columns, reciprocal = ((1 << 30) + count - 1) / count;
    for (int32_t c = 0; c < p->channels; c += 8) {
        const mve_pred16_t channels = vctp16q((uint32_t)(p->channels - c));
        const int16x8_t sum = sums(w->from + c, w, p, channels, is_signed);
        const int32x4_t even = is_signed ? vmovlbq_s16(sum) : (int32x4_t)vmovlbq_u16((uint16x8_t)sum);
        const int32x4_t odd = is_signed ? vmovltq_s16(sum) : (int32x4_t)vmovltq_u16((uint16x8_t)sum);
        const int16x8_t low = vmovnbq_s32(vdupq_n_s16(0), mean(even, count, reciprocal, p));
        const int16x8_t both = vmovntq_s32(low, mean(odd, count, reciprocal, p));
        vstrbq_p_s16((int8_t *)y + c, both, channels);
    }
}

MVE_INLINE void max_window(const struct window *w, uint8_t *y, const struct mve_pool *p, int is_signed)
{
    for (int32_t c = 0; c < p->channels; c += 16) {
        const mve_pred16_t channels = vctp8q((uint32_t)(p->channels - c));
        vstrbq_p_u8(y + c, clip(maxima(w->from + c, w, p, channels, is_signed), p, is_signed), channels);
    }
}

MVE_INLINE void pool(const uint8_t *x, uint8_t *y, const struct mve_pool *p, int is_max, int is_signed)
{
    for (int32_t oy = 0; oy < p->out_height; oy++) {
        for (int32_t ox = 0; ox < p->out_width; ox++) {
            const struct window w = window_at(x, oy, ox, p);
            if (is_max) {
                max_window(&w, y, p, is_signed);
            } else {
                average_window(&w, y, p, is_signed);
            }
            y += p->channels;
        }
    }
}

void mve_max_pool_s8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, (const struct mve_pool *)fields, 1, 1);
}

void mve_max_pool_u8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, (const struct mve_pool *)fields, 1, 0);
}

void mve_avg_pool_s8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, (const struct mve_pool *)fields, 0, 1);
}

void mve_avg_pool_u8(const void *x, void *y, const int32_t *fields)
{
    pool(x, y, (const struct mve_pool *)fields, 0, 0);
}
