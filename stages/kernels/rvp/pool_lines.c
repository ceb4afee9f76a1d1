/* Maxima of windows, whatever the channels: a row of pixels is a long vector of bytes.
 *
 * The rows of a window give a line of the largest element of each column. Along it the largest of one window of w columns
 * and of another one `step` columns on, step <= w, is that of w + step columns: so windows of 2, 4, ... columns, and what is
 * left at last, take a pass for each. A column is `channels` bytes on, and is shifted to where registers begin.
 *
 *     line     a0 a1 a2 b0 b1 b2 c0 c1 c2 ...      three channels
 *     and      b0 b1 b2 c0 c1 c2 d0 d1 d2 ...      the largest of two columns
 *
 * What lies beside the image is the lowest byte. Rows of x that do not begin at registers are copied once to where they do, or
 * read by lanes if they begin at these.
 */
#include "pool_lines.h"

#include "row_copies.h"

enum { W = RVP_WORD_BYTES };

/* `count` words: a row, the largest of two rows, or of three. */
typedef void copied_rows(char *to, const char *from, int32_t rows, int32_t count, int32_t to_step, int32_t from_step);
typedef void larger_rows(int8_t *to, const int8_t *a, const int8_t *b, int count);
typedef void largest_rows(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, int count);
/* `count` registers: the larger of each byte and the one `distance` bytes on, which does not lie at registers. */
typedef void larger_next(int8_t *line, int distance, int count);
/* `count` registers within the output's bounds. */
typedef void clamped(int8_t *line, int lowest, int highest, int count);

/* The largest of one to three rows by words of one size. */
struct maxima {
    copied_rows *copy;
    larger_rows *two;
    largest_rows *three;
};

/* What differs between int8 and uint8. */
struct bytes {
    struct maxima registers, lanes;
    larger_next *next;
    clamped *within;
};

#define MAXIMA_OF(words, size, load, store, max)                                                                       \
    static void two_##words(int8_t *to, const int8_t *a, const int8_t *b, int count)                                   \
    {                                                                                                                  \
        for (; count >= 4; count -= 4) {                                                                               \
            _Pragma("GCC unroll 4")                                                                                    \
            for (int i = 0; i < 4; i++) {                                                                              \
                store(to + i * size, max(load(a + i * size), load(b + i * size)));                                     \
            }                                                                                                          \
            to += 4 * size, a += 4 * size, b += 4 * size;                                                              \
        }                                                                                                              \
        for (; count > 0; count--) {                                                                                   \
            store(to, max(load(a), load(b)));                                                                          \
            to += size, a += size, b += size;                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void three_##words(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, int count)                \
    {                                                                                                                  \
        for (; count >= 4; count -= 4) {                                                                               \
            _Pragma("GCC unroll 4")                                                                                    \
            for (int i = 0; i < 4; i++) {                                                                              \
                store(to + i * size, max(max(load(a + i * size), load(b + i * size)), load(c + i * size)));            \
            }                                                                                                          \
            to += 4 * size, a += 4 * size, b += 4 * size, c += 4 * size;                                               \
        }                                                                                                              \
        for (; count > 0; count--) {                                                                                   \
            store(to, max(max(load(a), load(b)), load(c)));                                                            \
            to += size, a += size, b += size, c += size;                                                               \
        }                                                                                                              \
    }

MAXIMA_OF(registers_int8, W, rvp_load, rvp_store, rvp_smax8)
MAXIMA_OF(registers_uint8, W, rvp_load, rvp_store, rvp_umax8)
#if __riscv_xlen == 64
MAXIMA_OF(lanes_int8, 4, rvp_load_lane, rvp_store_lane, rvp_smax8)
MAXIMA_OF(lanes_uint8, 4, rvp_load_lane, rvp_store_lane, rvp_umax8)
#define LANES_OF(type) {rows_of_halves, two_lanes_##type, three_lanes_##type}
#else
#define LANES_OF(type) {rows_of_words, two_registers_##type, three_registers_##type}
#endif

#define BYTES_OF(type, max, min)                                                                                       \
    static void next_##type(int8_t *line, int distance, int count)                                                     \
    {                                                                                                                  \
        const uintptr_t down = 8 * ((uintptr_t)distance % W), up = 8 * W - down;                                       \
        const int8_t *on = line + distance / W * W;                                                                    \
        rvp_word held = rvp_load(on);                                                                                  \
        for (; count > 0; count -= 4) {                                                                                \
            _Pragma("GCC unroll 4")                                                                                    \
            for (int i = 0; i < 4; i++) {                                                                              \
                const rvp_word next = rvp_load(on + (i + 1) * W);                                                      \
                rvp_store(line + i * W, max(rvp_load(line + i * W), held >> down | next << up));                       \
                held = next;                                                                                           \
            }                                                                                                          \
            line += 4 * W, on += 4 * W;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void within_##type(int8_t *line, int lowest, int highest, int count)                                        \
    {                                                                                                                  \
        const rvp_word low = rvp_splat8(lowest), high = rvp_splat8(highest);                                           \
        for (; count > 0; count--) {                                                                                   \
            rvp_store(line, min(max(rvp_load(line), low), high));                                                      \
            line += W;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static const struct bytes type = {                                                                                 \
        {rows_of_words, two_registers_##type, three_registers_##type}, LANES_OF(type), next_##type, within_##type,             \
    }

BYTES_OF(int8, rvp_smax8, rvp_smin8);
BYTES_OF(uint8, rvp_umax8, rvp_umin8);

/* Whole registers in bytes >= 0. */
RVP_INLINE int registers_of(int bytes)
{
    return (int)((uint32_t)bytes / W);
}

/* The line of `count` words over rows first to end. */
RVP_INLINE void over_rows(int8_t *line, const struct rows *r, int first, int end, int count, const struct maxima *by)
{
    const int8_t *const a = row_at(r, first);
    if (end - first == 1) {
        by->copy((char *)line, (const char *)a, 1, count, 0, 0);
        return;
    }
    const int8_t *b = row_at(r, first + 1);
    if (end - first == 2) {
        by->two(line, a, b, count);
        return;
    }
    by->three(line, a, b, row_at(r, first + 2), count);
    for (first += 3; first + 1 < end; first += 2) {
        by->three(line, line, row_at(r, first), row_at(r, first + 1), count);
    }
    if (first < end) {
        by->two(line, line, row_at(r, first), count);
    }
}

/* A line of the largest of `kernel` > 1 columns, `count` registers of results; pixels are whole registers. The last pass takes up
 * to three windows and leaves its results in `to`. */
RVP_INLINE void over_columns(int8_t *to, int8_t *line, int kernel, int step, int count, const struct bytes *type)
{
    int window = 1;
    for (; 3 * window < kernel; window *= 2) {
        const int registers = count + registers_of((kernel - 2 * window) * step);
        type->registers.two(line, line, line + window * step, registers);
    }
    const int8_t *const last = line + (kernel - window) * step;
    if (2 * window < kernel) {
        type->registers.three(to, line, line + window * step, last, count);
    } else {
        type->registers.two(to, line, last, count);
    }
}

/* The same for pixels of any size, from `line` to `line`. */
RVP_INLINE void over_any_columns(int8_t *line, int kernel, int step, int count, const struct bytes *type)
{
    int window = 1;
    for (; window < kernel; window *= 2) {
        const int wider = 2 * window < kernel ? 2 * window : kernel, distance = (wider - window) * step;
        const int registers = count + registers_of((kernel - wider) * step + W - 1);
        if (distance % W == 0) {
            type->registers.two(line, line, line + distance, registers);
        } else {
            type->next(line, distance, registers);
        }
    }
}

/* Whether rows of lanes are read as they are. As counted, that takes 3 instructions more for each register of each row of a window;
 * a copy takes 5 for a register and 50 around, once for each row of the image. */
RVP_INLINE int reads_lanes(const struct rvp_pool *p, int registers)
{
    return 3 * p->kernel_y * registers < p->stride_y * (5 * registers + 50);
}

static void pool_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, int32_t line_bytes,
                       const struct bytes *type)
{
    const int channels = p->channels, row_bytes = p->width * channels, registers = registers_of(row_bytes + W - 1);
    const int columns = (p->out_width - 1) * p->stride_x + p->kernel_x; /* that windows have, beside the image too */
    const int before = p->left * channels, after = columns * channels - before - row_bytes;
    const int margin = (before + W - 1) & -W;
    /* Registers up to the last result: from the first one where pixels are whole registers, else from the line's begin. */
    const int results_end = (columns - p->kernel_x + 1) * channels;
    const int spread = registers_of(results_end + (channels % W == 0 ? 0 : margin - before) + W - 1);
    const int is_bounded = p->highest - p->lowest < 255;
    int8_t *const line = aligned(scratch), *const copies = line + line_bytes;
    const uintptr_t places = (uintptr_t)x | (uintptr_t)row_bytes;
    const int is_laned = W == 8 && places % W != 0 && places % 4 == 0 && reads_lanes(p, registers);
    const int copied = places % W != 0 && !is_laned ? p->kernel_y : 0;
    const struct rows rows = {copied != 0 ? copies : x, copied != 0 ? registers * W : row_bytes, copied};
    int ready = 0; /* rows of x that were copied */
    const int y0_end = p->out_height * p->stride_y - p->top;
    for (int y0 = -p->top; y0 != y0_end; y0 += p->stride_y) {
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        ready = copy_rows(&rows, copies, x, row_bytes, ready < first ? first : ready, end);
        if (is_laned) {
            over_rows(line + margin, &rows, first, end, (int)((uint32_t)row_bytes / 4), &type->lanes);
        } else {
            over_rows(line + margin, &rows, first, end, registers, &type->registers);
        }
        if (is_bounded) {
            type->within(line + margin, p->lowest, p->highest, registers);
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
            over_columns(to, results, p->kernel_x, channels, spread, type);
            results = to;
        } else {
            over_any_columns(line, p->kernel_x, channels, spread, type);
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
    pool_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &int8);
}

void rvp_max_lines_u8(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)
{
    pool_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &uint8);
}
