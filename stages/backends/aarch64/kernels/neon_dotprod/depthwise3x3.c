/* Depthwise 3x3, stride 1, 16 channels of an NHWC image at a time: two rows of output from four rows of input.
 *
 * A column of four rows is interleaved so that each 32-bit lane has the four rows of one channel. The dot product with
 * (w0, w1, w2, 0) is added to the upper output, the dot product with (0, w0, w1, w2) to the lower output.
 *
 *        c0  c1  c2
 *   r0   x   x   x    w0
 *   r1   x   x   x    w1  w0      upper = c0 . w[0] + c1 . w[1] + c2 . w[2]
 *   r2   x   x   x    w2  w1      lower: the same with the shifted weights
 *   r3   x   x   x        w2
 *
 * The window moves along the rows. Each of its three columns is four registers of four channels. Each pair of outputs loads one
 * new column. Padding is the input's zero point. A row of padding uses the same 16 bytes for every column.
 */
#include "depthwise3x3.h"

#include <stddef.h>

#include "../neon/depthwise.h"

/* Four rows of a column: channels 0 ... 3 in `a`, 4 ... 7 in `b`, and so on. */
struct column {
    int8x16_t a, b, c, d;
};

/* Neighbouring rows of input. Column `x` is read next. */
struct rows {
    const uint8_t *r0, *r1, *r2, *r3;
    ptrdiff_t step0, step1, step2, step3;
    int32_t x;
};

struct sums {
    int32x4_t a, b, c, d;
};

NEON_INLINE int8x16_t load(const uint8_t *x, int is_unsigned)
{
    const uint8x16_t bytes = vld1q_u8(x);
    return vreinterpretq_s8_u8(is_unsigned ? veorq_u8(bytes, vdupq_n_u8(0x80)) : bytes);
}

NEON_INLINE struct column interleaved(int8x16_t r0, int8x16_t r1, int8x16_t r2, int8x16_t r3)
{
    const int16x8_t upper_low = vreinterpretq_s16_s8(vzip1q_s8(r0, r1)), upper_high = vreinterpretq_s16_s8(vzip2q_s8(r0, r1));
    const int16x8_t lower_low = vreinterpretq_s16_s8(vzip1q_s8(r2, r3)), lower_high = vreinterpretq_s16_s8(vzip2q_s8(r2, r3));
    return (struct column){
        vreinterpretq_s8_s16(vzip1q_s16(upper_low, lower_low)), vreinterpretq_s8_s16(vzip2q_s16(upper_low, lower_low)),
        vreinterpretq_s8_s16(vzip1q_s16(upper_high, lower_high)), vreinterpretq_s8_s16(vzip2q_s16(upper_high, lower_high))};
}

NEON_INLINE struct column next(struct rows *rows, int is_unsigned)
{
    const struct column found = interleaved(load(rows->r0, is_unsigned), load(rows->r1, is_unsigned),
                                            load(rows->r2, is_unsigned), load(rows->r3, is_unsigned));
    rows->r0 += rows->step0;
    rows->r1 += rows->step1;
    rows->r2 += rows->step2;
    rows->r3 += rows->step3;
    return found;
}

/* The next column, or the zero point after the last column. */
NEON_INLINE struct column next_or(struct rows *rows, int is_unsigned, int32_t width, struct column outside)
{
    if (rows->x >= width) {
        return outside;
    }
    rows->x++;
    return next(rows, is_unsigned);
}

NEON_INLINE struct sums add_column(struct sums s, struct column x, const int8_t *weights)
{
    return (struct sums){vdotq_s32(s.a, x.a, vld1q_s8(weights)), vdotq_s32(s.b, x.b, vld1q_s8(weights + 16)),
                         vdotq_s32(s.c, x.c, vld1q_s8(weights + 32)), vdotq_s32(s.d, x.d, vld1q_s8(weights + 48))};
}

/* 16 channels of one output. */
NEON_INLINE uint8x16_t output(struct column c0, struct column c1, struct column c2, const int8_t *weights,
                              const int32_t *params, const struct neon_output *constants)
{
    struct sums s = {vld1q_s32(params), vld1q_s32(params + 4), vld1q_s32(params + 8), vld1q_s32(params + 12)};
    s = add_column(s, c0, weights);
    s = add_column(s, c1, weights + 64);
    s = add_column(s, c2, weights + 128);
    s.a = neon_scale_halves(s.a, vld1q_s32(params + 16), vld1q_s32(params + 32));
    s.b = neon_scale_halves(s.b, vld1q_s32(params + 20), vld1q_s32(params + 36));
    s.c = neon_scale_halves(s.c, vld1q_s32(params + 24), vld1q_s32(params + 40));
    s.d = neon_scale_halves(s.d, vld1q_s32(params + 28), vld1q_s32(params + 44));
    return neon_narrow_16(s.a, s.b, s.c, s.d, constants);
}

/* Writes the lower output first. If there is no lower row, the upper output overwrites it. */
NEON_INLINE void outputs(struct column c0, struct column c1, struct column c2, const int8_t *weights, const int32_t *params,
                         const struct neon_output *constants, uint8_t *upper, uint8_t *lower)
{
    const uint8x16_t first = output(c0, c1, c2, weights, params, constants);
    const uint8x16_t second = output(c0, c1, c2, weights + 192, params, constants);
    vst1q_u8(lower, second);
    vst1q_u8(upper, first);
}

/* Two rows of output, three columns at a time, so that columns need not move from register to register. */
NEON_INLINE void output_rows(struct rows rows, const int8_t *weights, const int32_t *params, const struct neon_depthwise *g,
                             uint8_t *upper, uint8_t *lower, int is_unsigned)
{
    const int8x16_t zero_point = load(g->fill, is_unsigned);
    const struct column outside = {zero_point, zero_point, zero_point, zero_point};
    const ptrdiff_t pixel = g->pixel;
    struct column c0 = g->left > 0 ? outside : next_or(&rows, is_unsigned, g->width, outside);
    struct column c1 = next_or(&rows, is_unsigned, g->width, outside), c2;
    int32_t left = g->out_width;
    for (; left >= 3 && rows.x + 3 <= g->width; left -= 3) {
        c2 = next(&rows, is_unsigned);
        outputs(c0, c1, c2, weights, params, &g->output, upper, lower);
        c0 = next(&rows, is_unsigned);
        outputs(c1, c2, c0, weights, params, &g->output, upper + pixel, lower + pixel);
        c1 = next(&rows, is_unsigned);
        outputs(c2, c0, c1, weights, params, &g->output, upper + 2 * pixel, lower + 2 * pixel);
        rows.x += 3;
        upper += 3 * pixel;
        lower += 3 * pixel;
    }
    for (; left > 0; left--) {
        c2 = next_or(&rows, is_unsigned, g->width, outside);
        outputs(c0, c1, c2, weights, params, &g->output, upper, lower);
        c0 = c1;
        c1 = c2;
        upper += pixel;
        lower += pixel;
    }
}

/* Row iy of the image, or the input's zero point with no step from a column to the next. */
NEON_INLINE const uint8_t *row_of(const uint8_t *x, int32_t iy, const struct neon_depthwise *g, ptrdiff_t *step)
{
    const int outside = iy < 0 || iy >= g->height;
    *step = outside ? 0 : g->pixel;
    return outside ? g->fill : x + (ptrdiff_t)iy * g->width * g->pixel;
}

NEON_INLINE void image(const uint8_t *x, const int8_t *weights, const int32_t *params, uint8_t *y,
                       const struct neon_depthwise *g, int is_unsigned)
{
    const ptrdiff_t out_row = (ptrdiff_t)g->out_width * g->pixel;
    int32_t iy = -g->top;
    for (int32_t oy = 0; oy < g->out_height; oy += 2) {
        struct rows rows = {.x = 0};
        rows.r0 = row_of(x, iy, g, &rows.step0);
        rows.r1 = row_of(x, iy + 1, g, &rows.step1);
        rows.r2 = row_of(x, iy + 2, g, &rows.step2);
        rows.r3 = row_of(x, iy + 3, g, &rows.step3);
        output_rows(rows, weights, params, g, y, oy + 1 < g->out_height ? y + out_row : y, is_unsigned);
        y += 2 * out_row;
        iy += 2;
    }
}

void neon_dotprod_depthwise3x3_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                  const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 0);
}

void neon_dotprod_depthwise3x3_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                  const void *parameters)
{
    image(x, weights, params, y, parameters, 1);
}
