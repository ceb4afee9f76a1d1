/* Depthwise 3x3, 16 channels of an NHWC image at a time, on int8 values.
 *
 * The window moves along a row. Each of its elements is a register. Each output loads one new column (stride 2: two).
 *
 *        c0  c1  c2                     c1  c2  c0'
 *   r0  x00 x01 x02    next output     x01 x02 x03
 *   r1  x10 x11 x12    -->             x11 x12 x13
 *   r2  x20 x21 x22                    x21 x22 x23
 *
 * Padding is the input's zero point. A row of padding uses the same 16 bytes for every column.
 */
#include "depthwise3x3.h"

/* Three neighbouring rows of input. Column `x` is read next. */
struct rows {
    const uint8_t *r0, *r1, *r2;
    ptrdiff_t step0, step1, step2;
    int32_t x;
};

NEON_INLINE int8x16_t load(const uint8_t *x, int is_unsigned)
{
    const uint8x16_t bytes = vld1q_u8(x);
    return vreinterpretq_s8_u8(is_unsigned ? veorq_u8(bytes, vdupq_n_u8(0x80)) : bytes);
}

NEON_INLINE struct column next(struct rows *rows, int is_unsigned)
{
    const struct column found = {load(rows->r0, is_unsigned), load(rows->r1, is_unsigned), load(rows->r2, is_unsigned)};
    rows->r0 += rows->step0;
    rows->r1 += rows->step1;
    rows->r2 += rows->step2;
    return found;
}

NEON_INLINE void output(struct column c0, struct column c1, struct column c2, struct weights w, const int32_t *params,
                        const struct neon_output *constants, uint8_t *y)
{
    struct sums s = {vld1q_s32(params), vld1q_s32(params + 4), vld1q_s32(params + 8), vld1q_s32(params + 12)};
    s = add_window(s, c0, c1, c2, w);
    s.a = neon_scale_halves(s.a, vld1q_s32(params + 16), vld1q_s32(params + 32));
    s.b = neon_scale_halves(s.b, vld1q_s32(params + 20), vld1q_s32(params + 36));
    s.c = neon_scale_halves(s.c, vld1q_s32(params + 24), vld1q_s32(params + 40));
    s.d = neon_scale_halves(s.d, vld1q_s32(params + 28), vld1q_s32(params + 44));
    vst1q_u8(y, neon_narrow_16(s.a, s.b, s.c, s.d, constants));
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

/* One row of output. `stride` and `is_unsigned` are literals: there is a function for each of their values. Three outputs at a
 * time, so that columns need not move from register to register. */
NEON_INLINE void output_row(struct rows rows, struct weights w, const int32_t *params, const struct neon_depthwise *g,
                            uint8_t *y, int stride, int is_unsigned)
{
    const int8x16_t zero_point = load(g->fill, is_unsigned);
    const struct column outside = {zero_point, zero_point, zero_point};
    const ptrdiff_t pixel = g->pixel;
    struct column c0 = g->left > 0 ? outside : next_or(&rows, is_unsigned, g->width, outside), c1, c2;
    int32_t left = g->out_width;
    if (stride == 1) {
        c1 = next_or(&rows, is_unsigned, g->width, outside);
        for (; left >= 3 && rows.x + 3 <= g->width; left -= 3) {
            c2 = next(&rows, is_unsigned);
            output(c0, c1, c2, w, params, &g->output, y);
            c0 = next(&rows, is_unsigned);
            output(c1, c2, c0, w, params, &g->output, y + pixel);
            c1 = next(&rows, is_unsigned);
            output(c2, c0, c1, w, params, &g->output, y + 2 * pixel);
            rows.x += 3;
            y += 3 * pixel;
        }
    } else {
        for (; left >= 3 && rows.x + 6 <= g->width; left -= 3) {
            c1 = next(&rows, is_unsigned);
            c2 = next(&rows, is_unsigned);
            output(c0, c1, c2, w, params, &g->output, y);
            c0 = next(&rows, is_unsigned);
            c1 = next(&rows, is_unsigned);
            output(c2, c0, c1, w, params, &g->output, y + pixel);
            c2 = next(&rows, is_unsigned);
            c0 = next(&rows, is_unsigned);
            output(c1, c2, c0, w, params, &g->output, y + 2 * pixel);
            rows.x += 6;
            y += 3 * pixel;
        }
    }
    for (; left > 0; left--) {
        if (stride == 2) {
            c1 = next_or(&rows, is_unsigned, g->width, outside);
        }
        c2 = next_or(&rows, is_unsigned, g->width, outside);
        output(c0, c1, c2, w, params, &g->output, y);
        c0 = stride == 1 ? c1 : c2;
        c1 = c2;
        y += pixel;
    }
}

NEON_INLINE void image(const uint8_t *x, const int8_t *weights, const int32_t *params, uint8_t *y,
                       const struct neon_depthwise *g, int stride, int is_unsigned)
{
    const struct weights w = {{vld1q_s8(weights), vld1q_s8(weights + 48), vld1q_s8(weights + 96)},
                              {vld1q_s8(weights + 16), vld1q_s8(weights + 64), vld1q_s8(weights + 112)},
                              {vld1q_s8(weights + 32), vld1q_s8(weights + 80), vld1q_s8(weights + 128)}};
    int32_t iy = -g->top;
    for (int32_t oy = 0; oy < g->out_height; oy++) {
        struct rows rows = {.x = 0};
        rows.r0 = row_of(x, iy, g, &rows.step0);
        rows.r1 = row_of(x, iy + 1, g, &rows.step1);
        rows.r2 = row_of(x, iy + 2, g, &rows.step2);
        output_row(rows, w, params, g, y, stride, is_unsigned);
        y += (ptrdiff_t)g->out_width * g->pixel;
        iy += stride;
    }
}

void neon_depthwise3x3_s1_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 1, 0);
}

void neon_depthwise3x3_s1_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters)
{
    image(x, weights, params, y, parameters, 1, 1);
}

void neon_depthwise3x3_s2_s8(const int8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters)
{
    image((const uint8_t *)x, weights, params, y, parameters, 2, 0);
}

void neon_depthwise3x3_s2_u8(const uint8_t *x, const int8_t *weights, const int32_t *params, void *y,
                             const void *parameters)
{
    image(x, weights, params, y, parameters, 2, 1);
}
