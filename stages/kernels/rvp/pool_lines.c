/* Maxima of windows, whatever the channels: a row of pixels is a long vector of bytes.
 *
 * The rows of a window give a line of the largest element of each column. Along it the largest of one window of w columns
 * and of another one `step` columns on, step <= w, is that of w + step columns: so windows of 2, 4, ... columns, and what is
 * left at last, take a pass for each. A column is `channels` bytes on, and is shifted to where registers begin.
 *
 *     line     a0 a1 a2 b0 b1 b2 c0 c1 c2 ...      three channels
 *     and      b0 b1 b2 c0 c1 c2 d0 d1 d2 ...      the largest of two columns
 *
 * What lies beside the image is the lowest byte. Rows of x that do not begin at registers are copied once to where they do.
 */
#include "pool_lines.h"

#include "copies_image.h"
#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* The output's bounds, in every byte. */
struct bounds {
    rvp_word lowest, highest;
};

RVP_INLINE rvp_word larger(rvp_word a, rvp_word b, int is_unsigned)
{
    return is_unsigned ? rvp_umax8(a, b) : rvp_smax8(a, b);
}

RVP_INLINE rvp_word smaller(rvp_word a, rvp_word b, int is_unsigned)
{
    return is_unsigned ? rvp_umin8(a, b) : rvp_smin8(a, b);
}

/* One register of the largest of `rows` <= 3 rows; within bounds, if there are any. */
RVP_INLINE void largest_of(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, int rows, const struct bounds *v,
                           int is_unsigned)
{
    rvp_word x = rvp_load(a);
    if (rows > 1) {
        x = larger(x, rvp_load(b), is_unsigned);
    }
    if (rows > 2) {
        x = larger(x, rvp_load(c), is_unsigned);
    }
    rvp_store(to, v == 0 ? x : smaller(larger(x, v->lowest, is_unsigned), v->highest, is_unsigned));
}

/* `count` registers of them; a literal number of rows makes a loop of its own. */
RVP_INLINE void largest_rows(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, int rows, int count,
                             const struct bounds *v, int is_unsigned)
{
    for (; count >= 4; count -= 4) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            largest_of(to + i * W, a + i * W, b + i * W, c + i * W, rows, v, is_unsigned);
        }
        to += 4 * W, a += 4 * W, b += 4 * W, c += 4 * W;
    }
    for (; count > 0; count--) {
        largest_of(to, a, b, c, rows, v, is_unsigned);
        to += W, a += W, b += W, c += W;
    }
}

/* How the rows of a window are found: `base` has those of x, or the copies of as many as a window has. */
struct rows {
    const int8_t *base;
    int step, copied; /* bytes from row to row; how many copies, 0 for none */
};

RVP_INLINE const int8_t *row_at(const struct rows *r, int number)
{
    return r->base + (r->copied != 0 ? number % r->copied : number) * r->step;
}

/* The line of `count` registers over rows first to end. */
RVP_INLINE void over_rows(int8_t *line, const struct rows *r, int first, int end, int count,
                          const struct bounds *v, int is_unsigned)
{
    const int8_t *const a = row_at(r, first);
    if (end - first == 1) {
        largest_rows(line, a, a, a, 1, count, v, is_unsigned);
        return;
    }
    const int8_t *b = row_at(r, first + 1);
    if (end - first == 2) {
        largest_rows(line, a, b, a, 2, count, v, is_unsigned);
        return;
    }
    largest_rows(line, a, b, row_at(r, first + 2), 3, count, v, is_unsigned);
    for (first += 3; first + 1 < end; first += 2) {
        largest_rows(line, line, row_at(r, first), row_at(r, first + 1), 3, count, v, is_unsigned);
    }
    if (first < end) {
        largest_rows(line, line, row_at(r, first), line, 2, count, v, is_unsigned);
    }
}

/* `count` registers: the larger of each byte and the one `distance` bytes on, which does not lie at registers. */
RVP_INLINE void with_next(int8_t *line, int distance, int count, int is_unsigned)
{
    const uintptr_t down = 8 * ((uintptr_t)distance % W), up = 8 * W - down;
    const int8_t *on = line + distance / W * W;
    rvp_word held = rvp_load(on);
    for (; count > 0; count -= 4) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const rvp_word next = rvp_load(on + (i + 1) * W);
            rvp_store(line + i * W, larger(rvp_load(line + i * W), held >> down | next << up, is_unsigned));
            held = next;
        }
        line += 4 * W, on += 4 * W;
    }
}

/* A line of the largest of `kernel` > 1 columns, `count` registers of results; pixels are whole registers. The last pass takes up
 * to three windows and leaves its results in `to`. */
RVP_INLINE void over_columns(int8_t *to, int8_t *line, int kernel, int step, int count, int is_unsigned)
{
    int window = 1;
    for (; 3 * window < kernel; window *= 2) {
        const int registers = count + (kernel - 2 * window) * step / W;
        largest_rows(line, line, line + window * step, line, 2, registers, 0, is_unsigned);
    }
    const int8_t *const last = line + (kernel - window) * step;
    if (2 * window < kernel) {
        largest_rows(to, line, line + window * step, last, 3, count, 0, is_unsigned);
    } else {
        largest_rows(to, line, last, line, 2, count, 0, is_unsigned);
    }
}

/* The same for pixels of any size, from `line` to `line`. */
RVP_INLINE void over_any_columns(int8_t *line, int kernel, int step, int count, int is_unsigned)
{
    int window = 1;
    for (; window < kernel; window *= 2) {
        const int wider = 2 * window < kernel ? 2 * window : kernel, distance = (wider - window) * step;
        const int registers = count + ((kernel - wider) * step + W - 1) / W;
        if (distance % W == 0) {
            largest_rows(line, line, line + distance, line, 2, registers, 0, is_unsigned);
        } else {
            with_next(line, distance, registers, is_unsigned);
        }
    }
}

/* The first byte of `bytes` that lies at a register. */
RVP_INLINE int8_t *aligned(void *bytes)
{
    return (int8_t *)(((uintptr_t)bytes + W - 1) & -(uintptr_t)W);
}

RVP_INLINE void pool_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, int32_t line_bytes,
                           int is_unsigned)
{
    const int channels = p->channels, row_bytes = p->width * channels, registers = (row_bytes + W - 1) / W;
    const int columns = (p->out_width - 1) * p->stride_x + p->kernel_x; /* that windows have, beside the image too */
    const int before = p->left * channels, after = columns * channels - before - row_bytes;
    const int margin = (before + W - 1) & -W;
    /* Registers up to the last result: from the first one where pixels are whole registers, else from the line's begin. */
    const int results_end = (columns - p->kernel_x + 1) * channels;
    const int spread = (results_end + (channels % W == 0 ? 0 : margin - before) + W - 1) / W;
    const struct bounds v = {rvp_splat8(p->lowest), rvp_splat8(p->highest)};
    const int is_bounded = p->highest - p->lowest < 255;
    int8_t *const line = aligned(scratch), *const copies = line + line_bytes;
    const int copied = ((uintptr_t)x | (uintptr_t)row_bytes) % W != 0 ? p->kernel_y : 0;
    const struct rows rows = {copied != 0 ? copies : x, copied != 0 ? registers * W : row_bytes, copied};
    int ready = 0; /* rows of x that were copied */
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        if (copied != 0) {
            for (ready = ready < first ? first : ready; ready < end; ready++) {
                copies_runs(copies + ready % copied * rows.step, x + ready * row_bytes, 1, row_bytes, 0, 0);
            }
        }
        if (is_bounded) {
            over_rows(line + margin, &rows, first, end, registers, &v, is_unsigned);
        } else {
            over_rows(line + margin, &rows, first, end, registers, 0, is_unsigned);
        }
        if (before > 0) {
            copies_fill_rows(line + margin - before, p->lowest, 1, before, 0);
        }
        if (after > 0) {
            copies_fill_rows(line + margin + row_bytes, p->lowest, 1, after, 0);
        }
        int8_t *results = line + margin - before;
        if (p->kernel_x > 1 && channels % W == 0) {
            int8_t *const to = p->stride_x == 1 && (uintptr_t)y % W == 0 ? y : results;
            over_columns(to, results, p->kernel_x, channels, spread, is_unsigned);
            results = to;
        } else {
            over_any_columns(line, p->kernel_x, channels, spread, is_unsigned);
        }
        if (p->stride_x != 1) {
            copies_copy_rows(y, results, p->out_width, channels, channels, p->stride_x * channels);
        } else if (results != y) {
            copies_copy_rows(y, results, 1, p->out_width * channels, 0, 0);
        }
        y += p->out_width * channels;
    }
}

void rvp_max_lines_s8(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)
{
    pool_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, 0);
}

void rvp_max_lines_u8(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)
{
    pool_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, 1);
}
