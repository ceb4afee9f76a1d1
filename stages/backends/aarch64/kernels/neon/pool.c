/* Average and maximum pooling, 16 channels at a time. Only elements inside the image count. If the number of channels is not a
 * multiple of 16, the last 16 channels overlap the ones before them. */
#include "pool.h"

#include <stddef.h>

/* The elements of a window that are inside the image: `rows` of `columns` pixels from `x` on. */
struct window {
    const uint8_t *x;
    int32_t rows, columns;
    ptrdiff_t row, pixel;
};

struct sums {
    int32x4_t a, b, c, d;
};

/* Number of pixels that are added in 16 bits before the sum is widened to 32: 128 * 255 fits. */
enum { PIXELS = 128 };

NEON_INLINE struct sums add_run(struct sums s, const uint8_t *x, int32_t count, ptrdiff_t pixel, int is_unsigned)
{
    int16x8_t low = vdupq_n_s16(0), high = vdupq_n_s16(0);
    for (; count > 0; count--) {
        const uint8x16_t value = vld1q_u8(x);
        if (is_unsigned) {
            low = vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(low), vget_low_u8(value)));
            high = vreinterpretq_s16_u16(vaddw_high_u8(vreinterpretq_u16_s16(high), value));
        } else {
            low = vaddw_s8(low, vget_low_s8(vreinterpretq_s8_u8(value)));
            high = vaddw_high_s8(high, vreinterpretq_s8_u8(value));
        }
        x += pixel;
    }
    return (struct sums){vaddw_s16(s.a, vget_low_s16(low)), vaddw_high_s16(s.b, low), vaddw_s16(s.c, vget_low_s16(high)),
                         vaddw_high_s16(s.d, high)};
}

/* sum / count, rounded to the nearest, halves away from zero. The quotient is exact enough in float32: |sum| + count / 2 and 256 * count
 * are below 2^23, so a quotient below an integer stays below it.
 */
NEON_INLINE int32x4_t average(int32x4_t sum, int32_t count)
{
    const int32x4_t sign = vshrq_n_s32(sum, 31);
    const int32x4_t half = vsubq_s32(veorq_s32(vdupq_n_s32(count / 2), sign), sign);
    return vcvtq_s32_f32(vdivq_f32(vcvtq_f32_s32(vaddq_s32(sum, half)), vdupq_n_f32((float)count)));
}

NEON_INLINE uint8x16_t average_16(const struct window *w, const struct neon_pool *v, int is_unsigned)
{
    struct sums s = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    const uint8_t *x = w->x;
    for (int32_t row = 0; row < w->rows; row++) {
        for (int32_t first = 0; first < w->columns; first += PIXELS) {
            const int32_t left = w->columns - first;
            s = add_run(s, x + first * w->pixel, left < PIXELS ? left : PIXELS, w->pixel, is_unsigned);
        }
        x += w->row;
    }
    const int32_t count = w->rows * w->columns;
    return neon_narrow_16(average(s.a, count), average(s.b, count), average(s.c, count), average(s.d, count), &v->output);
}

/* uint8 compares as int8 with the top bit flipped. */
NEON_INLINE uint8x16_t maximum_16(const struct window *w, const struct neon_pool *v)
{
    const uint8x16_t flip = vld1q_u8(v->output.flip);
    int8x16_t highest = vld1q_s8(v->output.low);
    const uint8_t *row = w->x;
    for (int32_t rows = w->rows; rows > 0; rows--) {
        const uint8_t *x = row;
        for (int32_t columns = w->columns; columns > 0; columns--) {
            highest = vmaxq_s8(highest, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), flip)));
            x += w->pixel;
        }
        row += w->row;
    }
    return veorq_u8(vreinterpretq_u8_s8(vminq_s8(highest, vld1q_s8(v->output.high))), flip);
}

NEON_INLINE void pixel(struct window w, uint8_t *y, const struct neon_pool *v, int is_unsigned, int is_max)
{
    const uint8_t *const x = w.x;
    for (int32_t next = 0; next < v->channels; next += 16) {
        const int32_t c = next + 16 <= v->channels ? next : v->channels - 16;
        w.x = x + c;
        vst1q_u8(y + c, is_max ? maximum_16(&w, v) : average_16(&w, v, is_unsigned));
    }
}

static inline int32_t at_least(int32_t x, int32_t least)
{
    return x < least ? least : x;
}

static inline int32_t at_most(int32_t x, int32_t most)
{
    return x > most ? most : x;
}

NEON_INLINE void pool(const uint8_t *x, uint8_t *y, const struct neon_pool *v, int is_unsigned, int is_max)
{
    const ptrdiff_t row = (ptrdiff_t)v->width * v->channels;
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        const int32_t top = oy * v->stride_y - v->top;
        const int32_t first_row = at_least(top, 0), end_row = at_most(top + v->kernel_height, v->height);
        for (int32_t ox = 0; ox < v->out_width; ox++) {
            const int32_t left = ox * v->stride_x - v->left;
            const int32_t first = at_least(left, 0), end = at_most(left + v->kernel_width, v->width);
            const struct window w = {x + first_row * row + (ptrdiff_t)first * v->channels, end_row - first_row, end - first,
                                     row, v->channels};
            pixel(w, y, v, is_unsigned, is_max);
            y += v->channels;
        }
    }
}

void neon_avg_pool_s8(const int8_t *x, void *y, const void *parameters)
{
    pool((const uint8_t *)x, y, parameters, 0, 0);
}

void neon_avg_pool_u8(const uint8_t *x, void *y, const void *parameters)
{
    pool(x, y, parameters, 1, 0);
}

void neon_max_pool(const void *x, void *y, const void *parameters)
{
    pool(x, y, parameters, 1, 1);
}
