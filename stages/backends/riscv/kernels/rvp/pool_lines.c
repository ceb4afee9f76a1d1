/* Maxima of windows with any number of channels. A row of pixels is a long vector of bytes.
 *
 * First the rows of the windows are reduced to a line with the maximum of each column. Then passes over the line combine columns. The
 * maximum of w columns and that of the w columns `step` later (step <= w) give the maximum of w + step columns. So there is a pass
 * for 2, 4, ... columns, and one for the rest. The next column is `channels` bytes later; it is shifted to a register boundary.
 *
 *     line     a0 a1 a2 b0 b1 b2 c0 c1 c2 ...      three channels
 *     and      b0 b1 b2 c0 c1 c2 d0 d1 d2 ...      the maximum of two columns
 *
 * Pixels that are whole registers need no shift, and the last pass computes only the pixels of the output. On RV64 pixels that are
 * whole lanes can be computed lane by lane: twice the steps, but no shifts and no copies. Padding is the lowest byte. Rows of x that
 * do not begin at a register boundary are copied once to one, or read lane by lane if they begin at a lane.
 *
 * There is one entry point per alignment, so that a firmware contains only the code that its layers need. For whole registers nothing
 * is copied. Other pixels are copied in the largest units that fit.
 */
#include "pool_lines.h"

#include "row_copies.h"

enum { W = RVP_WORD_BYTES };

/* `count` words with the maxima of two rows, or of three. There are `times` such groups: consecutive in `to`, with `gap` bytes
 * between them in the rows. */
typedef void larger_rows(int8_t *to, const int8_t *a, const int8_t *b, intptr_t count, intptr_t times, intptr_t gap);
typedef void largest_rows(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, intptr_t count, intptr_t times, intptr_t gap);
/* `count` registers: the larger of each byte and the byte `distance` bytes later. `distance` is not a multiple of a register. */
typedef void larger_next(int8_t *line, int distance, int count);
/* `count` words within the output's bounds. */
typedef void clamped(int8_t *line, int lowest, int highest, int count);

/* Maxima by words of one size: registers or lanes. */
struct maxima {
    larger_rows *two;
    largest_rows *three;
    clamped *within;
};

/* What differs between int8 and uint8. */
struct bytes {
    struct maxima registers, lanes;
    larger_next *next;
};

/* Hides the pointer's value, and so a loop's count, from the compiler. Otherwise the compiler would compute the ends of all
 * pointers before the loop, which takes longer than a loop that runs once or twice. */
#define UNKNOWN(pointer) __asm__("" : "+r"(pointer))

#define MAXIMA_OF(words, size, load, store, max, min)                                                                   \
    static void two_##words(int8_t *to, const int8_t *a, const int8_t *b, intptr_t count, intptr_t times, intptr_t gap)             \
    {                                                                                                                  \
        do {                                                                                                           \
            const int8_t *const fours = to + (count & -4) * size, *const end = to + count * size;                      \
            for (; to != fours; to += 4 * size, a += 4 * size, b += 4 * size) {                                        \
                _Pragma("GCC unroll 4")                                                                                \
                for (int i = 0; i < 4; i++) {                                                                          \
                    store(to + i * size, max(load(a + i * size), load(b + i * size)));                                 \
                }                                                                                                      \
                UNKNOWN(to);                                                                                           \
            }                                                                                                          \
            for (; to != end; to += size, a += size, b += size) {                                                      \
                store(to, max(load(a), load(b)));                                                                      \
                UNKNOWN(to);                                                                                           \
            }                                                                                                          \
            a += gap, b += gap;                                                                                        \
        } while (--times > 0);                                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    static void three_##words(int8_t *to, const int8_t *a, const int8_t *b, const int8_t *c, intptr_t count, intptr_t times, intptr_t gap)\
    {                                                                                                                  \
        do {                                                                                                           \
            const int8_t *const fours = to + (count & -4) * size, *const end = to + count * size;                      \
            for (; to != fours; to += 4 * size, a += 4 * size, b += 4 * size, c += 4 * size) {                         \
                _Pragma("GCC unroll 4")                                                                                \
                for (int i = 0; i < 4; i++) {                                                                          \
                    store(to + i * size, max(max(load(a + i * size), load(b + i * size)), load(c + i * size)));        \
                }                                                                                                      \
                UNKNOWN(to);                                                                                           \
            }                                                                                                          \
            for (; to != end; to += size, a += size, b += size, c += size) {                                           \
                store(to, max(max(load(a), load(b)), load(c)));                                                        \
                UNKNOWN(to);                                                                                           \
            }                                                                                                          \
            a += gap, b += gap, c += gap;                                                                              \
        } while (--times > 0);                                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    static void within_##words(int8_t *line, int lowest, int highest, int count)                                       \
    {                                                                                                                  \
        const rvp_word low = rvp_splat8(lowest), high = rvp_splat8(highest);                                           \
        for (; count > 0; count--) {                                                                                   \
            store(line, min(max(load(line), low), high));                                                              \
            line += size;                                                                                              \
        }                                                                                                              \
    }

MAXIMA_OF(registers_int8, W, rvp_load, rvp_store, rvp_smax8, rvp_smin8)
MAXIMA_OF(registers_uint8, W, rvp_load, rvp_store, rvp_umax8, rvp_umin8)
#if __riscv_xlen == 64
MAXIMA_OF(lanes_int8, 4, rvp_load_lane, rvp_store_lane, rvp_smax8, rvp_smin8)
MAXIMA_OF(lanes_uint8, 4, rvp_load_lane, rvp_store_lane, rvp_umax8, rvp_umin8)
#define LANES_OF(type) {two_lanes_##type, three_lanes_##type, within_lanes_##type}
#else
#define LANES_OF(type) REGISTERS_OF(type)
#endif
#define REGISTERS_OF(type) {two_registers_##type, three_registers_##type, within_registers_##type}

#define BYTES_OF(type, max)                                                                                            \
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
    static const struct maxima registers_##type = REGISTERS_OF(type);                                                  \
    static const struct bytes any_##type = {REGISTERS_OF(type), LANES_OF(type), next_##type}

BYTES_OF(int8, rvp_smax8);
BYTES_OF(uint8, rvp_umax8);
#if __riscv_xlen == 64
static const struct maxima lanes_int8 = LANES_OF(int8), lanes_uint8 = LANES_OF(uint8);
#endif

/* The line of `count` words over rows first to end. */
RVP_INLINE void over_rows(int8_t *line, const struct rows *r, int first, int end, int count, const struct maxima *by)
{
    const int8_t *so_far = row_at(r, first);
    for (first++; first + 1 < end; first += 2) {
        by->three(line, so_far, row_at(r, first), row_at(r, first + 1), count, 1, 0);
        so_far = line;
    }
    if (first < end || so_far != line) {
        by->two(line, so_far, first < end ? row_at(r, first) : so_far, count, 1, 0);
    }
}

/* Fills registers, or words of `size`, from `to` up to `end` with one byte, and up to three more. */
RVP_INLINE void fill_words(int8_t *to, const int8_t *end, int value, int size)
{
    const rvp_word all = rvp_splat8(value);
    for (; to < end; to += 4 * size) {
        _Pragma("GCC unroll 4")
        for (int i = 0; i < 4; i++) {
            if (size == W) {
                rvp_store(to + i * size, all);
            } else {
                rvp_store_lane(to + i * size, all);
            }
        }
    }
}

RVP_INLINE void fill(int8_t *to, const int8_t *end, int value)
{
    fill_words(to, end, value, W);
}

/* The largest of windows along a line, in a row of the output: groups of `count` words, `groups` times, a pixel each or
 * all of the row. Windows have `kernel` columns of `step` bytes and begin `stride` bytes apart. */
RVP_INLINE void over_columns(int8_t *y, int8_t *line, intptr_t kernel, intptr_t step, intptr_t count, intptr_t groups,
                             intptr_t stride, const struct maxima *by, int size)
{
    intptr_t window = 1;
    for (; 3 * window < kernel; window *= 2) {
        const intptr_t bytes = (groups - 1) * stride + count * size + (kernel - 2 * window) * step;
        by->two(line, line, line + window * step, bytes / size, 1, 0);
    }
    const int8_t *const last = line + (kernel - window) * step;
    if (2 * window < kernel) {
        by->three(y, line, line + window * step, last, count, groups, stride - count * size);
    } else {
        by->two(y, line, last, count, groups, stride - count * size);
    }
}

/* Pixels that are whole words of `size`, registers or lanes: so are rows and their padding. */
RVP_INLINE void whole_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, const struct maxima *by, int size)
{
    const intptr_t channels = p->channels, row_bytes = p->width * channels, margin = p->left * channels;
    const intptr_t columns = (p->out_width - 1) * p->stride_x + p->kernel_x; /* columns of windows, including padding */
    const intptr_t after = columns * channels - margin - row_bytes, out_bytes = p->out_width * channels;
    const int is_run = p->stride_x == 1 || p->out_width == 1; /* results are neighbours */
    const intptr_t groups = is_run ? 1 : p->out_width, count = (is_run ? out_bytes : channels) / size;
    const struct rows rows = {x, row_bytes, 0};
    int8_t *const line = aligned(scratch), *const row = line + margin, *to = y;
    for (int oy = 0; oy < p->out_height; oy++, to += out_bytes) {
        const int y0 = oy * p->stride_y - p->top;
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        if (is_run && p->kernel_x == 1) { /* no pass along a line */
            over_rows(to, &rows, first, end, count, by);
            continue;
        }
        if (oy == 0 || p->kernel_x > 3) { /* more columns take passes that change the line */
            fill_words(line, row, p->lowest, size);
            fill_words(row + row_bytes, row + row_bytes + after, p->lowest, size);
        }
        over_rows(row, &rows, first, end, row_bytes / size, by);
        over_columns(to, line, p->kernel_x, channels, count, groups, p->stride_x * channels, by, size);
    }
    if (p->highest - p->lowest < 255) {
        by->within(y, p->lowest, p->highest, (int)(to - y) / size);
    }
}

/* Replaces a line by the maxima of `kernel` columns: `count` registers of results. */
RVP_INLINE void over_any_columns(int8_t *line, int kernel, int step, int count, const struct bytes *type)
{
    int window = 1;
    for (; window < kernel; window *= 2) {
        const int wider = 2 * window < kernel ? 2 * window : kernel, distance = (wider - window) * step;
        const int registers = count + ((kernel - wider) * step + W - 1) / W;
        if (distance % W == 0) {
            type->registers.two(line, line, line + distance, registers, 1, 0);
        } else {
            type->next(line, distance, registers);
        }
    }
}
/* Fills the bytes after a row up to the end of a register. */
RVP_INLINE void fill_behind(int8_t *row, int row_bytes, int after, int value)
{
    int8_t *const end = row + row_bytes, *const last = row + row_bytes / W * W;
    const rvp_word own = rvp_load(last), behind = (rvp_word)-1 << 8 * (row_bytes % W);
    fill(last, end + after, value);
    rvp_store(last, rvp_select_bits(behind, rvp_load(last), own));
}

/* Copies rows of `count` units, which are y_step and x_step bytes apart. */
typedef void picked(char *y, const char *x, int32_t rows, int32_t count, int32_t y_step, int32_t x_step);

/* Whether rows of lanes are read in place. By count, this takes 3 more instructions for each register of each row of a window;
 * a copy takes 5 for each register and 50 in addition, once for each row of the image. */
RVP_INLINE int reads_lanes(const struct rvp_pool *p, int registers)
{
    return 3 * p->kernel_y * registers < p->stride_y * (5 * registers + 50);
}

/* Pixels of any size. `pick` copies pixels that lie apart by units of `unit` bytes; without it they are copied as runs. */
static __attribute__((noinline)) void any_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, int32_t line_bytes,
                                                const struct bytes *type, picked *pick, int unit)
{
    const int channels = p->channels, row_bytes = p->width * channels, registers = (row_bytes + W - 1) / W;
    const int columns = (p->out_width - 1) * p->stride_x + p->kernel_x; /* columns of windows, including padding */
    const int before = p->left * channels, after = columns * channels - before - row_bytes;
    const int margin = (before + W - 1) & -W;
    /* Registers up to the last result, from the line's begin. */
    const int results_end = (columns - p->kernel_x + 1) * channels, spread = (results_end + margin - before + W - 1) / W;
    int8_t *const line = aligned(scratch), *const copies = line + line_bytes, *const results = line + margin - before;
    const uintptr_t places = (uintptr_t)x | (uintptr_t)row_bytes;
    const int is_laned = W == 8 && places % W != 0 && places % 4 == 0 && reads_lanes(p, registers);
    const int copied = places % W != 0 && !is_laned ? p->kernel_y : 0;
    const struct rows rows = {copied != 0 ? copies : x, copied != 0 ? registers * W : row_bytes, copied};
    int ready = 0; /* rows of x that were copied */
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        ready = copy_rows(&rows, copies, x, row_bytes, ready < first ? first : ready, end);
        fill(line, line + margin, p->lowest);
        if (is_laned) {
            over_rows(line + margin, &rows, first, end, row_bytes / 4, &type->lanes);
        } else {
            over_rows(line + margin, &rows, first, end, registers, &type->registers);
        }
        if (p->highest - p->lowest < 255) {
            type->registers.within(line + margin, p->lowest, p->highest, registers);
        }
        if (after > 0) {
            fill_behind(line + margin, row_bytes, after, p->lowest);
        }
        over_any_columns(line, p->kernel_x, channels, spread, type);
        if (p->stride_x == 1) {
            copies_runs(y, results, 1, p->out_width * channels, 0, 0);
        } else if (pick != 0) {
            pick((char *)y, (const char *)results, p->out_width, channels / unit, channels, p->stride_x * channels);
        } else {
            copies_runs(y, results, p->out_width, channels, channels, p->stride_x * channels);
        }
        y += p->out_width * channels;
    }
}

#define ENTRIES(suffix, type)                                                                                          \
    void rvp_max_whole_lines_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)  \
    {                                                                                                                  \
        (void)line;                                                                                                    \
        whole_lines(x, y, scratch, (const struct rvp_pool *)parameters, &registers_##type, W);                                \
    }                                                                                                                  \
    void rvp_max_lines_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)        \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &any_##type, 0, 1);                        \
    }                                                                                                                  \
    void rvp_max_lines_1_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &any_##type, rows_of_bytes, 1);            \
    }                                                                                                                  \
    void rvp_max_lines_2_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &any_##type, rows_of_quarters, 2);         \
    }                                                                                                                  \
    void rvp_max_lines_4_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &any_##type, rows_of_halves, 4);           \
    }

ENTRIES(s8, int8)
ENTRIES(u8, uint8)

#if __riscv_xlen == 64
#define LANE_ENTRY(suffix, type)                                                                                       \
    void rvp_max_lane_lines_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)   \
    {                                                                                                                  \
        (void)line;                                                                                                    \
        whole_lines(x, y, scratch, (const struct rvp_pool *)parameters, &lanes_##type, 4);                             \
    }

LANE_ENTRY(s8, int8)
LANE_ENTRY(u8, uint8)
#endif
