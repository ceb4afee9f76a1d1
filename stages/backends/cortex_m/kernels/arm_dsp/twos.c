#include "twos.h"

#include "dsp.h"

/* Taps of a window inside the image, from `x` on. column: bytes to the next tap; jump: from the end of a row to the next row. first,
 * row_gap, gap: words of weights to skip before the taps, after a row and after all rows. */
struct taps {
    const uint8_t *x;
    int32_t first, rows, columns, column, jump, row_gap, gap;
};

/* The first tap at or after `from`, at most `taps`. */
DSP_INLINE int32_t taps_before(int32_t from, int32_t dilation, int32_t taps)
{
    const int32_t before = from <= 0 ? 0 : dilation == 1 ? from : (from + dilation - 1) / dilation;
    return before < taps ? before : taps;
}

DSP_INLINE struct taps taps_at(const uint8_t *image, int32_t y, int32_t x, const struct arm_dsp_twos *p, int32_t tap_words)
{
    const int32_t ky = taps_before(-y, p->dilation_y, p->kernel_height), kx = taps_before(-x, p->dilation_x, p->kernel_width);
    const int32_t columns = taps_before(p->width - x, p->dilation_x, p->kernel_width) - kx;
    const int32_t rows = columns > 0 ? taps_before(p->height - y, p->dilation_y, p->kernel_height) - ky : 0;
    const int32_t row = p->dilation_y * p->width * p->channels, column = p->dilation_x * p->channels;
    return (struct taps){image + (y * p->width + x) * p->channels + ky * row + kx * column,
                         (ky * p->kernel_width + kx) * tap_words,
                         rows,
                         columns,
                         column,
                         row - columns * column,
                         (p->kernel_width - columns) * tap_words,
                         ((p->kernel_height - rows) * p->kernel_width - ky * p->kernel_width - kx) * tap_words};
}

/* Sums of two outputs of both groups; with blocks of one output a and b of them. */
struct sums {
    int32_t a, b, c, d;
};

/* odd: a word of x. */
#define PRODUCTS(extend, weights)                                                                                      \
    __asm__(extend " %[even], %[zero], %[odd]\n\t" extend " %[odd], %[zero], %[odd], ror #8\n\t"                        \
                   "pkhtb %[second], %[odd], %[even], asr #16\n\t"                                                     \
                   "pkhbt %[first], %[even], %[odd], lsl #16\n\t" weights                                             \
            : [a] "+r"(s->a), [b] "+r"(s->b), [c] "+r"(s->c), [d] "+r"(s->d), [w] "+r"(*w), [odd] "+r"(odd),           \
              [even] "=&r"(even), [first] "=&r"(first), [second] "=&r"(second)                                         \
            : [zero] "r"(zero))
#define OF_ONE                                                                                                         \
    "ldrd %[even], %[odd], [%[w]], #8\n\t"                                                                             \
    "smlad %[a], %[first], %[even], %[a]\n\t"                                                                          \
    "smlad %[b], %[second], %[odd], %[b]\n\t"
#define OF_TWO                                                                                                         \
    "ldrd %[even], %[odd], [%[w]], #8\n\t"                                                                             \
    "smlad %[a], %[first], %[even], %[a]\n\t"                                                                          \
    "smlad %[b], %[first], %[odd], %[b]\n\t"                                                                           \
    "ldrd %[even], %[odd], [%[w]], #8\n\t"                                                                             \
    "smlad %[c], %[second], %[even], %[c]\n\t"                                                                         \
    "smlad %[d], %[second], %[odd], %[d]\n\t"

/* Adds the products of a tap at x. */
DSP_INLINE void add_products(struct sums *s, const uint8_t *x, const int32_t **w, uint32_t zero, int outputs, int is_unsigned)
{
    uint32_t even, odd = dsp_load(x), first, second;
    if (outputs == 2 && is_unsigned) {
        PRODUCTS("uxtab16", OF_TWO);
    } else if (outputs == 2) {
        PRODUCTS("sxtab16", OF_TWO);
    } else if (is_unsigned) {
        PRODUCTS("uxtab16", OF_ONE);
    } else {
        PRODUCTS("sxtab16", OF_ONE);
    }
}

/* smmlar twice, with the next two words of scale. */
DSP_INLINE uint32_t scaled(int32_t sum, const int32_t **scale, int32_t zero_point)
{
    int32_t doubled, rounder;
    __asm__("ldrd %[doubled], %[rounder], [%[scale]], #8\n\t"
            "smmlar %[doubled], %[sum], %[doubled], %[sum]\n\t"
            "smmlar %[doubled], %[doubled], %[rounder], %[zero_point]"
            : [doubled] "=&r"(doubled), [rounder] "=&r"(rounder), [scale] "+r"(*scale)
            : [sum] "r"(sum), [zero_point] "r"(zero_point));
    return (uint32_t)doubled;
}

/* One block of outputs of two groups to y and `apart` bytes behind; returns the weights of the next block. side: of a whole window of 1x1
 * or 3x3, or 0. */
DSP_INLINE const int32_t *block(const struct taps *t, const uint8_t *x, const int32_t *w, uint8_t *y, int32_t apart,
                                const struct arm_dsp_twos *p, int outputs, int is_unsigned, int side)
{
    struct sums s = {w[0], w[1], outputs == 2 ? w[2] : 0, outputs == 2 ? w[3] : 0};
    const int32_t column = t->column, jump = t->jump, row_gap = t->row_gap, row_bytes = jump + side * column;
    const uint32_t zero = (uint32_t)p->zero;
    w += 2 * outputs + t->first;
    if (side) {
#pragma GCC unroll 3
        for (int32_t row = 0; row < side; row++) {
#pragma GCC unroll 3
            for (int32_t tap = 0; tap < side; tap++) {
                add_products(&s, x + tap * column, &w, zero, outputs, is_unsigned);
            }
            x += row_bytes;
        }
    } else {
        for (int32_t rows = t->rows; rows > 0; rows--) {
            for (int32_t columns = t->columns; columns > 0; columns--) {
                add_products(&s, x, &w, zero, outputs, is_unsigned);
                x += column;
            }
            x += jump;
            w += row_gap;
        }
    }
    w += t->gap;
    const uint32_t a = scaled(s.a, &w, p->zero_point), b = scaled(s.b, &w, p->zero_point);
    uint32_t bytes;
    if (outputs == 2) {
        const uint32_t c = scaled(s.c, &w, p->zero_point), d = scaled(s.d, &w, p->zero_point);
        bytes = dsp_usat16_8(dsp_low_halves(a, c)) | dsp_usat16_8(dsp_low_halves(b, d)) << 8;
    } else {
        bytes = dsp_usat16_8(dsp_low_halves(a, b));
    }
    bytes = dsp_uadd8(dsp_uqsub8(bytes, (uint32_t)p->floor), (uint32_t)p->low);
    if (outputs == 2) {
        const uint16_t low = (uint16_t)bytes, high = (uint16_t)(bytes >> 16);
        __builtin_memcpy(y, &low, 2);
        __builtin_memcpy(y + apart, &high, 2);
    } else {
        y[0] = (uint8_t)bytes;
        y[apart] = (uint8_t)(bytes >> 16);
    }
    return w;
}

/* All outputs of a pixel. */
DSP_INLINE void pixel(const struct taps *t, const int32_t *w, uint8_t *y, const struct arm_dsp_twos *p, int outputs, int is_unsigned,
                      int side)
{
    for (int32_t n = p->blocks; n > 0; n--) {
        w = block(t, t->x + w[0], w + 2, y + w[1], p->apart, p, outputs, is_unsigned, side);
    }
}

DSP_INLINE void layer(const uint8_t *x, const int32_t *weights, uint8_t *y, const int32_t *fields, int outputs, int is_unsigned)
{
    const struct arm_dsp_twos p = *(const struct arm_dsp_twos *)fields; /* local copy: y may alias it */
    const int32_t row = p.dilation_y * p.width * p.channels, column = p.dilation_x * p.channels;
    const int32_t side = p.kernel_height == p.kernel_width && (p.kernel_width == 1 || p.kernel_width == 3) ? p.kernel_width : 0;
    const int32_t high = (side - 1) * p.dilation_y, wide = (side - 1) * p.dilation_x;
    for (int32_t images = p.images; images > 0; images--) {
        for (int32_t oy = 0; oy < p.out_height; oy++) {
            const int32_t iy = oy * p.stride_y - p.top;
            for (int32_t ox = 0; ox < p.out_width; ox++) {
                const int32_t ix = ox * p.stride_x - p.left;
                if (side && iy >= 0 && iy + high < p.height && ix >= 0 && ix + wide < p.width) {
                    const uint8_t *const first = x + (iy * p.width + ix) * p.channels;
                    const struct taps t = {first, 0, side, side, column, row - side * column, 0, 0};
                    if (side == 1) {
                        pixel(&t, weights, y, &p, outputs, is_unsigned, 1);
                    } else {
                        pixel(&t, weights, y, &p, outputs, is_unsigned, 3);
                    }
                } else {
                    const struct taps t = taps_at(x, iy, ix, &p, 2 * outputs);
                    pixel(&t, weights, y, &p, outputs, is_unsigned, 0);
                }
                y += p.out_channels;
            }
        }
        x += p.height * p.width * p.channels;
    }
}

#define LAYER(name, outputs, is_unsigned)                                                                              \
    void name(const void *x, const int32_t *weights, void *y, const int32_t *fields)                                   \
    {                                                                                                                  \
        layer(x, weights, y, fields, outputs, is_unsigned);                                                            \
    }

LAYER(arm_dsp_twos_one_s8, 1, 0)
LAYER(arm_dsp_twos_one_u8, 1, 1)
LAYER(arm_dsp_twos_two_s8, 2, 0)
LAYER(arm_dsp_twos_two_u8, 2, 1)
