#include "ne16_core.h"

#include "requantize.h"

typedef uint32_t __attribute__((may_alias)) word;

static inline word *words_at(void *at)
{
    return (word *)at;
}

/* Writes `count` columns of one row of windows: from a row of the image, or the padding's value. */
struct row {
    uint8_t *to;
    int32_t column_bytes, channels, pixel;
};

static void put_padding(struct row *r, int32_t count, int32_t value)
{
    for (; count > 0; count--, r->to += r->column_bytes) {
        for (int32_t c = 0; c < r->channels; c++)
            r->to[c] = (uint8_t)value;
    }
}

static void put_bytes(struct row *r, int32_t count, const uint8_t *from)
{
    uint8_t *to = r->to;
    const int32_t step = r->column_bytes, pixel = r->pixel;

    for (; count >= 4; count -= 4, to += 4 * step, from += 4 * pixel) {
        const uint8_t a = from[0], b = from[pixel], c = from[2 * pixel], d = from[3 * pixel];
        to[0] = a, to[step] = b, to[2 * step] = c, to[3 * step] = d;
    }
    for (; count > 0; count--, to += step, from += pixel)
        *to = *from;
    r->to = to;
}

static void put_words(struct row *r, int32_t count, const uint8_t *from)
{
    for (; count > 0; count--, r->to += r->column_bytes, from += r->pixel) {
        word *t = words_at(r->to);
        const word *s = (const word *)(const void *)from;
        int32_t left = r->channels >> 2;

        for (; left >= 4; left -= 4, t += 4, s += 4) {
            const word a = s[0], b = s[1], c = s[2], d = s[3];
            t[0] = a, t[1] = b, t[2] = c, t[3] = d;
        }
        for (; left > 0; left--)
            *t++ = *s++;
    }
}

static void put_pixels(struct row *r, int32_t count, const uint8_t *from)
{
    uint8_t *const to = r->to;

    if (((r->channels | r->pixel | r->column_bytes) & 3) == 0 && (((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
        put_words(r, count, from);
        return;
    }
    for (int32_t c = 0; c < r->channels; c++) {
        r->to = to + c;
        put_bytes(r, count, from + c);
    }
    r->to = to + count * r->column_bytes;
}

/* Columns from `first` on; some may be outside of the image. */
static void put_columns(struct row *r, const uint8_t *image_row, int32_t first, int32_t count,
                        const struct ne16_windows *v)
{
    int32_t before = first < 0 ? -first : 0, inside;

    if (image_row == 0 || before > count)
        before = count;
    put_padding(r, before, v->pad);
    first += before, count -= before;
    inside = v->width_in - first < count ? v->width_in - first : count;
    if (inside > 0) {
        put_pixels(r, inside, image_row + first * v->pixel);
        count -= inside;
    }
    put_padding(r, count, v->pad);
}

/* Columns with one byte for each tap, as in most networks' first layer. They are written from top to bottom, so that
 * writes are contiguous. */
static void put_thin_strip(uint8_t *to, const uint8_t *image, int32_t row, const struct ne16_windows *v)
{
    const int32_t row_bytes = v->width_in * v->pixel, below = v->height - row;
    const int32_t first = row < 0 ? -row : 0, end = below < v->taps ? below : v->taps;

    for (int32_t j = 0; j < v->columns; j++) {
        const int32_t x = v->step == v->stride_x ? j : j / v->width * v->stride_x + j % v->width;
        const int32_t column = x - v->left;
        const uint8_t *from = image + row * row_bytes + column * v->pixel;
        int32_t tap = 0;

        if (column >= 0 && column < v->width_in) {
            for (; tap < first && tap < v->taps; tap++)
                *to++ = (uint8_t)v->pad;
            for (from += tap * row_bytes; tap < end; tap++, from += row_bytes)
                *to++ = *from;
        }
        for (; tap < v->taps; tap++)
            *to++ = (uint8_t)v->pad;
    }
}

void ne16_gather(const void *image, void *strips, const int32_t *windows)
{
    const struct ne16_windows *v = (const struct ne16_windows *)windows;
    const int32_t column_bytes = v->taps * v->channels, strip = v->columns * column_bytes;
    uint8_t *to = strips;

    for (int32_t y = 0; y < v->rows; y++, to += strip) {
        if (v->channels == 1) {
            put_thin_strip(to, image, y * v->stride_y - v->above, v);
            continue;
        }
        for (int32_t tap = 0; tap < v->taps; tap++) {
            const int32_t row = y * v->stride_y + tap - v->above;
            const uint8_t *from = 0;
            struct row r = {to + tap * v->channels, column_bytes, v->channels, v->pixel};

            if (row >= 0 && row < v->height)
                from = (const uint8_t *)image + row * v->width_in * v->pixel;
            if (v->step == v->stride_x) {
                put_columns(&r, from, -v->left, v->columns, v);
                continue;
            }
            for (int32_t x = 0, column = 0; column < v->columns; x++, column += v->width)
                put_columns(&r, from, x * v->stride_x - v->left, v->width, v);
        }
    }
}

void ne16_requantize(const void *sums, void *to, const void *constants, const int32_t *requantizer)
{
    const struct ne16_requantizer *v = (const struct ne16_requantizer *)requantizer;
    const int32_t *multipliers = (const int32_t *)(const void *)((const char *)constants + v->multipliers);
    const int8_t *exponents = (const int8_t *)constants + v->exponents;
    const int32_t *sum = sums;
    uint8_t *row = to;

    for (int32_t p = 0; p < v->pixels; p++, row += v->to_pixel, sum += v->channels) {
        for (int32_t c = 0; c < v->channels; c++) {
            const int32_t scaled = v->single ? fl_requantize_single(sum[c], multipliers[c], exponents[c])
                                             : fl_requantize_double(sum[c], multipliers[c], exponents[c]);
            row[c] = (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
        }
    }
}
