/* y = requantize(bias + x * transpose(w)), six rows at a time.
 *
 * A word holds one element of each of several rows. So one multiplication by a weight gives a product for each row, and one
 * addition adds them to their sums. The rows of a tile are packed into such words once and used for all columns. Before a sum
 * overflows its part of the word, the sums are separated. How often depends on the size of a word.
 */
#include "gemm.h"

#include "panels32.h"
#include "panels64.h"

INLINE void move(struct six_rows *x, int by)
{
    *x = (struct six_rows){x->a + by, x->b + by, x->c + by, x->d + by, x->e + by, x->f + by};
}

/* The next `count` elements of six rows become words. */
static __attribute__((noinline)) void pack(word *to, const int8_t *const *rows, int32_t count)
{
    struct six_rows x = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
    const int8_t *const end = x.a + count;
    if (count % 2 != 0) {
        pack_element(to, &x, 0);
        move(&x, 1);
        to += WORDS;
    }
    while (x.a != end) {
        pack_element(to, &x, 0);
        pack_element(to + WORDS, &x, 1);
        move(&x, 2);
        to += 2 * WORDS;
    }
}

/* Pads the groups of a row. */
INLINE void fill_up(word *to, const word *end)
{
    while (to != end) {
        *to++ = 0;
    }
}

/* The last tile has the last six rows: some rows of the previous tile are computed again. */
INLINE int32_t tile_at(int32_t done, int32_t at_once, int32_t rows)
{
    return done + at_once <= rows ? done : rows - at_once;
}

void riscv_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int32_t rows,
                   int32_t columns, const void *parameters)
{
    const struct riscv_gemm *e = parameters;
    const int32_t at_once = rows < ROWS ? rows : ROWS;
    word *const words = (word *)packed, *const filled = words + WORDS * e->row;
    const int32_t step = e->x_row;
    for (int32_t done = 0; done < rows; done += ROWS) {
        const int32_t first = tile_at(done, at_once, rows);
        const int8_t *const a = x + first * step, *const b = a + step, *const c = b + step, *const d = c + step;
        const int8_t *from[ROWS] = {a, b, c, d, d + step, d + 2 * step};
        for (int32_t i = at_once; i < ROWS; i++) { /* with fewer than six rows, the last is repeated */
            from[i] = from[at_once - 1];
        }
        pack(words, from, e->row);
        fill_up(filled, words + WORDS * e->depth);
        panels(words, w, channels, (uint8_t *)y + first * e->y_row, at_once, columns, e);
    }
}

/* The windows of a tile: the position of each in a plane, and its first row and column, which may be outside. The taps of a row
 * that are inside the image's columns in all windows are one run, from `begin` on. */
struct windows {
    int32_t at[ROWS], row[ROWS], column[ROWS];
    int32_t begin, run;
};

/* Finds the windows of `count` pixels from `first` on. */
static void find_windows(struct windows *t, int32_t first, int32_t count, const struct riscv_windows *g)
{
    int32_t out_row = first / g->out_width, out_column = first % g->out_width;
    int32_t begin = 0, end = g->kernel_width;
    for (int32_t i = 0; i < ROWS; i++) { /* with fewer pixels, the last is repeated */
        const int32_t row = out_row * g->stride_y - g->top, column = out_column * g->stride_x - g->left;
        t->row[i] = row;
        t->column[i] = column;
        t->at[i] = (row * g->width + column) * g->pixel;
        begin = begin > -column ? begin : -column;
        end = end < g->width - column ? end : g->width - column;
        if (i + 1 < count && ++out_column == g->out_width) {
            out_column = 0;
            out_row++;
        }
    }
    const int are_neighbours = g->dilation_x == 1 && g->pixel == g->channels;
    t->begin = begin;
    t->run = are_neighbours && end > begin ? end - begin : 1;
}

/* One row of all windows of a plane. Returns the address after its words. */
static word *pack_row(word *to, const int8_t *plane, const struct windows *t, int32_t ky, const int8_t *outside,
                      const struct riscv_windows *g)
{
    const int32_t down = ky * g->dilation_y;
    const uint32_t height = (uint32_t)g->height, width = (uint32_t)g->width;
    int32_t taps;
    for (int32_t kx = 0; kx < g->kernel_width; kx += taps) {
        const int32_t right = kx * g->dilation_x, further = (down * g->width + right) * g->pixel;
        const int8_t *from[ROWS];
        for (int32_t i = 0; i < ROWS; i++) {
            const int is_inside = (uint32_t)(t->row[i] + down) < height && (uint32_t)(t->column[i] + right) < width;
            from[i] = is_inside ? plane + (t->at[i] + further) : outside;
        }
        taps = kx == t->begin ? t->run : 1;
        pack(to, from, taps * g->channels);
        to += WORDS * taps * g->channels;
    }
    return to;
}

/* Converts uint8 to int8. A lane with s (negative from 128 on) becomes s + 128 - 256 for s >= 0, else s + 128. s + 128 fits a byte, and its
 * top bit distinguishes the cases: flipping it and subtracting 128 does both.
 */
static void flip(word *at, const word *end)
{
    const word tops = 0x80 * ONES;
    for (; at != end; at++) {
        *at = ((*at + tops) ^ tops) - tops;
    }
}

/* The windows of `count` pixels from `first` on. A separate function, so that its memory is free while panels are computed. */
static __attribute__((noinline)) void pack_windows(word *to, const word *end, const int8_t *x, int32_t first, int32_t count,
                                                   const int8_t *outside, const struct riscv_windows *g)
{
    word *const begin = to;
    struct windows t;
    find_windows(&t, first, count, g);
    for (int32_t c = 0; c < g->planes; c++, x += g->height * g->width) {
        for (int32_t ky = 0; ky < g->kernel_height; ky++) {
            to = pack_row(to, x, &t, ky, outside, g);
        }
    }
    fill_up(to, end);
    if (g->is_unsigned) {
        flip(begin, end);
    }
}

void riscv_windows_s8(const void *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int8_t *outside,
                      int32_t pixels, int32_t columns, const void *parameters, const void *gathered)
{
    const struct riscv_gemm *e = parameters;
    const struct riscv_windows *g = gathered;
    const int32_t at_once = pixels < ROWS ? pixels : ROWS;
    word *const words = (word *)packed, *const end = words + WORDS * e->depth;
    for (int32_t i = 0; i < g->kernel_width * g->channels; i++) {
        outside[i] = (int8_t)g->fill;
    }
    for (int32_t done = 0; done < pixels; done += ROWS) {
        const int32_t first = tile_at(done, at_once, pixels);
        pack_windows(words, end, x, first, at_once, outside, g);
        panels(words, w, channels, (uint8_t *)y + first * e->y_row, at_once, columns, e);
    }
}
