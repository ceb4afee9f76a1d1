/* Depthwise 3x3, 8 channels of an NHWC image at a time, on int8 values: a register has two neighbouring pixels of output.
 *
 *   c0 = {x[i], x[i + s]}   c1 = {x[i + 1], x[i + 1 + s]}   c2 = {x[i + 2], x[i + 2 + s]}    i: first column of the window, s: stride
 *
 * With stride 1, c2 becomes c0 of the next pair.
 */
#include "depthwise3x3.h"

struct rows {
    const uint8_t *r0, *r1, *r2;
    ptrdiff_t step0, step1, step2;
};

/* Columns x and x + stride of a row, each the zero point if it is not in the image. */
NEON_INLINE int8x16_t halves(const uint8_t *row, ptrdiff_t step, int32_t x, const struct neon_depthwise *g, int stride,
                             int is_unsigned, int inside)
{
    const int32_t x1 = x + stride;
    const uint8_t *const first = inside || (x >= 0 && x < g->width) ? row + x * step : g->fill;
    const uint8_t *const second = inside || (x1 >= 0 && x1 < g->width) ? row + x1 * step : g->fill;
    const uint8x16_t bytes = vcombine_u8(vld1_u8(first), vld1_u8(second));
    return vreinterpretq_s8_u8(is_unsigned ? veorq_u8(bytes, vdupq_n_u8(0x80)) : bytes);
}

NEON_INLINE struct column column(const struct rows *rows, int32_t x, const struct neon_depthwise *g, int stride,
                                 int is_unsigned, int inside)
{
    return (struct column){halves(rows->r0, rows->step0, x, g, stride, is_unsigned, inside),
                           halves(rows->r1, rows->step1, x, g, stride, is_unsigned, inside),
                           halves(rows->r2, rows->step2, x, g, stride, is_unsigned, inside)};
}

/* Two pixels of eight channels. */
NEON_INLINE uint8x16_t output(struct column c0, struct column c1, struct column c2, struct weights w, const int32_t *params,
                              const struct neon_output *constants)
{
    const int32x4_t low = vld1q_s32(params), high = vld1q_s32(params + 4);
    const int32x4_t low_multiplier = vld1q_s32(params + 8), high_multiplier = vld1q_s32(params + 12);
    const int32x4_t low_shift = vld1q_s32(params + 16), high_shift = vld1q_s32(params + 20);
    const struct sums s = add_window((struct sums){low, high, low, high}, c0, c1, c2, w);
    return neon_narrow_16(neon_scale_halves(s.a, low_multiplier, low_shift), neon_scale_halves(s.b, high_multiplier, high_shift),
                          neon_scale_halves(s.c, low_multiplier, low_shift), neon_scale_halves(s.d, high_multiplier, high_shift),
                          constants);
}

/* A pair of outputs whose windows start at columns x and x + stride, near the image's border. */
NEON_INLINE uint8x16_t border(const struct rows *rows, int32_t x, struct weights w, const int32_t *params,
                              const struct neon_depthwise *g, int stride, int is_unsigned)
{
    const struct column c0 = column(rows, x, g, stride, is_unsigned, 0), c1 = column(rows, x + 1, g, stride, is_unsigned, 0);
    return output(c0, c1, column(rows, x + 2, g, stride, is_unsigned, 0), w, params, &g->output);
}

/* `stride` and `is_unsigned` are literals: there is a function for each of their values. */
NEON_INLINE void output_row(const struct rows *rows, struct weights w, const int32_t *params, const struct neon_depthwise *g,
                            uint8_t *y, int stride, int is_unsigned)
{
    const ptrdiff_t pixel = g->pixel;
    int32_t ox = 0, x = -g->left;
    while (ox < g->out_width) {
        if (x >= 0 && ox + 2 <= g->out_width && x + stride + 3 <= g->width) {
            struct column c0 = column(rows, x, g, stride, is_unsigned, 1);
            do {
                const struct column c1 = column(rows, x + 1, g, stride, is_unsigned, 1);
                const struct column c2 = column(rows, x + 2, g, stride, is_unsigned, 1);
                const uint8x16_t both = output(c0, c1, c2, w, params, &g->output);
                vst1_u8(y, vget_low_u8(both));
                vst1_u8(y + pixel, vget_high_u8(both));
                y += 2 * pixel;
                ox += 2;
                x += 2 * stride;
                c0 = stride == 1 || x + stride + 3 > g->width ? c2 : column(rows, x, g, stride, is_unsigned, 1);
            } while (ox + 2 <= g->out_width && x + stride + 3 <= g->width);
        } else {
            const uint8x16_t both = border(rows, x, w, params, g, stride, is_unsigned);
            vst1_u8(y, vget_low_u8(both));
            y += pixel;
            ox++;
            x += stride;
        }
    }
}

/* The same eight weights in both halves. */
NEON_INLINE int8x16_t twice(const int8_t *weights)
{
    const int8x8_t w = vld1_s8(weights);
    return vcombine_s8(w, w);
}

NEON_INLINE void image(const uint8_t *x, const int8_t *weights, const int32_t *params, uint8_t *y,
                       const struct neon_depthwise *g, int stride, int is_unsigned)
{
    const struct weights w = {{twice(weights), twice(weights + 24), twice(weights + 48)},
                              {twice(weights + 8), twice(weights + 32), twice(weights + 56)},
                              {twice(weights + 16), twice(weights + 40), twice(weights + 64)}};
    int32_t iy = -g->top;
    for (int32_t oy = 0; oy < g->out_height; oy++) {
        struct rows rows;
        rows.r0 = row_of(x, iy, g, &rows.step0);
        rows.r1 = row_of(x, iy + 1, g, &rows.step1);
        rows.r2 = row_of(x, iy + 2, g, &rows.step2);
        output_row(&rows, w, params, g, y, stride, is_unsigned);
        y += (ptrdiff_t)g->out_width * g->pixel;
        iy += stride;
    }
}

void neon_depthwise3x3_pairs_s1_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 1, 0);
}

void neon_depthwise3x3_pairs_s1_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters)
{
    image(x, weights, params, y, parameters, 1, 1);
}

void neon_depthwise3x3_pairs_s2_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 2, 0);
}

void neon_depthwise3x3_pairs_s2_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                                   const void *parameters)
{
    image(x, weights, params, y, parameters, 2, 1);
}
