/* Averages of windows with any number of channels. A row of pixels is a long vector of bytes.
 *
 * First the rows of the windows are added to a line of 16-bit sums. It is stored as two vectors of 16-bit lanes: the sums of even
 * bytes and the sums of odd bytes. The sums of a pixel that is `distance` bytes later are distance / 2 lanes later, in the other
 * vector if the distance is odd.
 *
 *     bytes          a0 a1 a2 b0 b1 b2 c0 c1 c2 d0 d1 d2      three channels
 *     even           a0    a2    b1    c0    c2    d1
 *     odd            a1    b0    b2    c1    d0    d2
 *     next pixel     b0    b2    c1    d0    d2       added to `even`: `odd` from its second lane on
 *
 * Padding is 0. A row of means is split into runs of pixels whose windows have the same number of columns.
 *
 * There is one entry point per alignment, so that a firmware contains only the code that its layers need. For pixels that are whole
 * registers nothing is copied or shifted. Other pixels are copied in the largest units that fit.
 */
#include "average_lines.h"

#include "averages.h"
#include "row_copies.h"

enum { W = RVP_WORD_BYTES };

struct mean;

/* The line of `count` registers over rows first to end. */
typedef void line_over_rows(rvp_memory *line, const struct rows *r, int first, int end, int count);
/* `count` registers of means of `columns` columns, `step` words apart. */
typedef void means_of_line(int8_t *to, const rvp_memory *line, int columns, int step, int count, const struct mean *m);

/* What differs between int8 and uint8. */
struct bytes {
    line_over_rows *over_rows;
    means_of_line *means;
    int is_unsigned;
};

/* Two registers of sums: of even and of odd bytes. */
struct sums {
    rvp_word even, odd;
};

RVP_INLINE struct sums sums_at(const rvp_memory *line)
{
    return (struct sums){line[0], line[1]};
}

RVP_INLINE struct sums added(struct sums a, struct sums b)
{
    return (struct sums){rvp_add16(a.even, b.even), rvp_add16(a.odd, b.odd)};
}

RVP_INLINE struct sums bytes_at(const int8_t *from, int is_unsigned)
{
    const rvp_word bytes = rvp_load(from);
    return is_unsigned ? (struct sums){rvp_zunpkd820(bytes), rvp_zunpkd831(bytes)}
                       : (struct sums){rvp_sunpkd820(bytes), rvp_sunpkd831(bytes)};
}

/* `count` > 0 registers with the sums of up to three rows (a literal). With `more` they are added to the present sums. */
RVP_INLINE void sum_rows(rvp_memory *line, const int8_t *a, const int8_t *b, const int8_t *c, int rows, int count, int more,
                         int is_unsigned)
{
    const rvp_memory *const end = line + 2 * count;
#pragma GCC unroll 2
    do {
        struct sums s = bytes_at(a, is_unsigned);
        if (rows > 1) {
            s = added(s, bytes_at(b, is_unsigned));
        }
        if (rows > 2) {
            s = added(s, bytes_at(c, is_unsigned));
        }
        if (more) {
            s = added(s, sums_at(line));
        }
        line[0] = s.even;
        line[1] = s.odd;
        line += 2, a += W, b += W, c += W;
    } while (line != end);
}

RVP_INLINE void any_over_rows(rvp_memory *line, const struct rows *r, int first, int end, int count, int is_unsigned)
{
    const int8_t *const a = row_at(r, first);
    if (end - first == 1) {
        sum_rows(line, a, a, a, 1, count, 0, is_unsigned);
        return;
    }
    const int8_t *const b = row_at(r, first + 1);
    if (end - first == 2) {
        sum_rows(line, a, b, a, 2, count, 0, is_unsigned);
        return;
    }
    sum_rows(line, a, b, row_at(r, first + 2), 3, count, 0, is_unsigned);
    for (first += 3; first + 1 < end; first += 2) {
        const int8_t *const next = row_at(r, first);
        sum_rows(line, next, row_at(r, first + 1), next, 2, count, 1, is_unsigned);
    }
    if (first < end) {
        const int8_t *const last = row_at(r, first);
        sum_rows(line, last, last, last, 1, count, 1, is_unsigned);
    }
}

static void over_rows_s8(rvp_memory *line, const struct rows *r, int first, int end, int count)
{
    any_over_rows(line, r, first, end, count, 0);
}

static void over_rows_u8(rvp_memory *line, const struct rows *r, int first, int end, int count)
{
    any_over_rows(line, r, first, end, count, 1);
}

/* Shifts that join two consecutive registers to one that begins within the first. The second register is shifted by `up` and one
 * bit more, so that `down` may be 0. */
struct shift {
    int down, up;
};

RVP_INLINE struct shift shift_of(int halves)
{
    return (struct shift){16 * halves, 8 * W - 1 - 16 * halves};
}

RVP_INLINE rvp_word joined(rvp_word first, rvp_word next, struct shift by)
{
    return first >> by.down | next << 1 << by.up;
}

/* Adds the sums that are `distance` bytes later in the line to `count` registers of sums: to those of `to` or, for the first
 * added column, of `line`. */
static __attribute__((noinline)) void add_column(rvp_memory *to, const rvp_memory *own, const rvp_memory *line, int distance, int count)
{
    const rvp_memory *const end = to + 2 * count;
    const int odd = distance % 2, halves = distance % W / 2;
    const rvp_memory *on = line + distance / W * 2;
    /* With an odd distance, odd bytes need the even bytes one half later, which may be the first of the next register. */
    const int carried = odd && halves + 1 == W / 2;
    const struct shift by_even = shift_of(halves), by_odd = shift_of(carried ? 0 : halves + odd);
    const rvp_memory *const evens = on + odd, *const odds = on + (odd ? 2 * carried : 1);
    const int between = (int)(odds - evens);
    rvp_word even = *evens, other = *odds;
    on = evens;
#pragma GCC unroll 2
    for (; to != end; to += 2, own += 2) {
        on += 2;
        const rvp_word next_even = on[0], next_other = on[between];
        const struct sums moved = {joined(even, next_even, by_even), joined(other, next_other, by_odd)};
        const struct sums s = added(sums_at(own), moved);
        to[0] = s.even;
        to[1] = s.odd;
        even = next_even;
        other = next_other;
    }
}

/* Constants of means. */
struct mean {
    struct divider divider;
    rvp_word lowest, highest; /* in every byte */
};

/* A register of means. `has_ties` is a literal: whether sums can be halves below zero. */
RVP_INLINE rvp_word means_of(struct sums s, const struct mean *m, int has_ties, int is_unsigned)
{
    const struct divider *const d = &m->divider;
    if (has_ties) {
        s.even = rvp_add16(s.even, rvp_scmplt16(s.even, d->ties));
        s.odd = rvp_add16(s.odd, rvp_scmplt16(s.odd, d->ties));
    }
    /* Quotients of 8 bits with `shift` <= 6 bits of fraction, so that the upper byte takes no bits of a neighbour. */
    const rvp_word even = rvp_srl16(rvp_khm16(s.even, d->factor), (rvp_word)d->shift);
    const rvp_word odd = rvp_khm16(s.odd, d->factor) << (8 - d->shift);
    const rvp_word means = rvp_select_bits(rvp_splat16(0xff00), odd, even);
    return is_unsigned ? rvp_umin8(rvp_umax8(means, m->lowest), m->highest)
                       : rvp_smin8(rvp_smax8(means ^ rvp_splat8(0x80), m->lowest), m->highest);
}

/* `count` registers of means of `columns` columns, `step` words apart. `literal` is columns, or 0 for any number. */
RVP_INLINE void means_along(int8_t *to, const rvp_memory *line, int literal, int columns, int step, int count, const struct mean *m,
                            int has_ties, int is_unsigned)
{
    const struct sums start = {m->divider.start, m->divider.start};
    for (const int8_t *const end = to + count * W; to != end; to += W, line += 2) {
        struct sums s = added(start, sums_at(line));
        if (literal == 3) {
            s = added(added(s, sums_at(line + step)), sums_at(line + 2 * step));
        } else if (literal == 0) {
            const rvp_memory *on = line;
            for (int more = columns - 1; more > 0; more--) {
                on += step;
                s = added(s, sums_at(on));
            }
        }
        rvp_store(to, means_of(s, m, has_ties, is_unsigned));
    }
}

RVP_INLINE void any_means(int8_t *to, const rvp_memory *line, int columns, int step, int count, const struct mean *given,
                          int has_ties, int is_unsigned)
{
    const struct mean own = *given, *const m = &own; /* local copy: `to` may alias it */
    if (columns == 1) {
        means_along(to, line, 1, 1, 0, count, m, has_ties, is_unsigned);
    } else if (columns == 3) {
        means_along(to, line, 3, 3, step, count, m, has_ties, is_unsigned);
    } else {
        means_along(to, line, 0, columns, step, count, m, has_ties, is_unsigned);
    }
}

static void means_s8(int8_t *to, const rvp_memory *line, int columns, int step, int count, const struct mean *m)
{
    if (m->divider.ties != 0) {
        any_means(to, line, columns, step, count, m, 1, 0);
    } else {
        any_means(to, line, columns, step, count, m, 0, 0);
    }
}

static void means_u8(int8_t *to, const rvp_memory *line, int columns, int step, int count, const struct mean *m)
{
    any_means(to, line, columns, step, count, m, 0, 1);
}

static const struct bytes bytes_s8 = {over_rows_s8, means_s8, 0}, bytes_u8 = {over_rows_u8, means_u8, 1};

/* Means of a run of bytes, `begin` to `end`. Its first register may already hold other means. */
RVP_INLINE void run_of_means(int8_t *to, const rvp_memory *line, int begin, int end, const struct mean *m, const struct bytes *type)
{
    const int first = begin / W, count = (end + W - 1) / W - first;
    int8_t *const from = to + first * W;
    const rvp_word before = rvp_load(from), behind = (rvp_word)-1 << 8 * (begin % W);
    type->means(from, line + 2 * first, 1, 0, count, m);
    rvp_store(from, rvp_select_bits(behind, rvp_load(from), before));
}

/* Columns of the window at ox that lie in the image. */
RVP_INLINE int columns_at(const struct rvp_pool *p, int ox)
{
    const int first = ox * p->stride_x - p->left, end = first + p->kernel_x;
    return (end < p->width ? end : p->width) - (first < 0 ? 0 : first);
}

/* A range of pixels of an output row whose windows have the same number of columns. */
struct run {
    int first, end, columns;
};

/* The run that begins at ox. Windows of pixels `inner` to `inner_end` have all columns in the image. */
RVP_INLINE struct run run_at(const struct rvp_pool *p, int ox, int inner, int inner_end)
{
    const int is_inner = ox == inner && ox < inner_end;
    return (struct run){ox, is_inner ? inner_end : ox + 1, is_inner ? p->kernel_x : columns_at(p, ox)};
}

RVP_INLINE int inner_begin(const struct rvp_pool *p)
{
    const int first = (p->left + p->stride_x - 1) / p->stride_x;
    return first < p->out_width ? first : p->out_width;
}

RVP_INLINE int inner_end(const struct rvp_pool *p)
{
    const int room = p->width + p->left - p->kernel_x, behind = room < 0 ? 0 : room / p->stride_x + 1;
    return behind < p->out_width ? behind : p->out_width;
}

/* In the first kind of run windows have all columns, in the second fewer. A row has one run of the first kind, and usually few others. */
struct means {
    struct mean inner, outer;
};

RVP_INLINE struct means unknown_means(const struct rvp_pool *p)
{
    const struct mean unknown = {{.count = 0}, rvp_splat8(p->lowest), rvp_splat8(p->highest)};
    return (struct means){unknown, unknown};
}

RVP_INLINE const struct mean *mean_for(struct means *known, int is_inner, int count, const struct bytes *type)
{
    struct mean *const m = is_inner ? &known->inner : &known->outer;
    if (m->divider.count != count) {
        m->divider = divider_of(count, type->is_unsigned);
    }
    return m;
}

/* Pixels are whole registers, and so are rows. So the next column is a constant number of registers later. */
static __attribute__((noinline)) void whole_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, int32_t line_bytes,
                                                  const struct bytes *type)
{
    const int channels = p->channels, row_bytes = p->width * channels, registers = channels / W;
    const int inner = inner_begin(p), inner_behind = inner_end(p);
    const struct rows rows = {x, row_bytes, 0};
    rvp_memory *const line = (rvp_memory *)(void *)aligned(scratch);
    struct means known = unknown_means(p);
    copies_fill_rows((char *)line, 0, 1, 2 * line_bytes, 0);
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        type->over_rows(line + 2 * p->left * registers, &rows, first, end, p->width * registers);
        for (struct run run = run_at(p, 0, inner, inner_behind); run.first < p->out_width;
             run = run_at(p, run.end, inner, inner_behind)) {
            const struct mean *const m = mean_for(&known, run.columns == p->kernel_x, (end - first) * run.columns, type);
            const int together = p->stride_x == 1 ? run.end - run.first : 1;
            for (int pixel = run.first; pixel != run.end; pixel += together) {
                const rvp_memory *const from = line + 2 * pixel * p->stride_x * registers;
                type->means(y + pixel * channels, from, p->kernel_x, 2 * registers, together * registers, m);
            }
        }
        y += p->out_width * channels;
    }
}

/* Copies rows of `count` units, which are y_step and x_step bytes apart. */
typedef void picked(char *y, const char *x, int32_t rows, int32_t count, int32_t y_step, int32_t x_step);

/* Pixels of any size. `pick` copies pixels that lie apart by units of `unit` bytes; without it they are copied as runs. */
static __attribute__((noinline)) void any_lines(const int8_t *x, int8_t *y, void *scratch, const struct rvp_pool *p, int32_t line_bytes,
                                                const struct bytes *type, picked *pick, int unit)
{
    const int channels = p->channels, row_bytes = p->width * channels, registers = (row_bytes + W - 1) / W;
    const int before = p->left * channels, margin = (before + W - 1) & -W, lead = margin - before, step = p->stride_x * channels;
    const int inner = inner_begin(p), inner_behind = inner_end(p);
    /* Windows begin `lead` bytes after the start of the line. */
    const int wide = (lead + (p->out_width - 1) * step + channels + W - 1) / W;
    int8_t *const begin = aligned(scratch), *const results = begin + 4 * line_bytes, *const copies = begin + 5 * line_bytes;
    rvp_memory *const line = (rvp_memory *)(void *)begin, *const wider = (rvp_memory *)(void *)(begin + 2 * line_bytes);
    const int copied = ((uintptr_t)x | (uintptr_t)row_bytes) % W != 0 ? p->kernel_y : 0;
    const struct rows rows = {copied != 0 ? copies : x, copied != 0 ? registers * W : row_bytes, copied};
    struct means known = unknown_means(p);
    copies_fill_rows((char *)line, 0, 1, 2 * line_bytes, 0);
    if (copied != 0) {
        copies_fill_rows((char *)copies, 0, 1, copied * registers * W, 0); /* bytes after a row stay 0 */
    }
    int ready = 0; /* rows of x that were copied */
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first = y0 < 0 ? 0 : y0, end = y0 + p->kernel_y < p->height ? y0 + p->kernel_y : p->height;
        ready = copy_rows(&rows, copies, x, row_bytes, ready < first ? first : ready, end);
        type->over_rows(line + margin / W * 2, &rows, first, end, registers);
        const rvp_memory *own = line;
        for (int column = 1; column < p->kernel_x; column++, own = wider) {
            add_column(wider, own, line, column * channels, wide);
        }
        for (struct run run = run_at(p, 0, inner, inner_behind); run.first < p->out_width;
             run = run_at(p, run.end, inner, inner_behind)) {
            const struct mean *const m = mean_for(&known, run.columns == p->kernel_x, (end - first) * run.columns, type);
            run_of_means(results, own, lead + run.first * step, lead + (run.end - 1) * step + channels, m, type);
        }
        if (p->stride_x == 1) {
            copies_runs((char *)y, (const char *)results + lead, 1, p->out_width * channels, 0, 0);
        } else if (pick != 0) {
            pick((char *)y, (const char *)results + lead, p->out_width, channels / unit, channels, step);
        } else {
            copies_runs((char *)y, (const char *)results + lead, p->out_width, channels, channels, step);
        }
        y += p->out_width * channels;
    }
}

#define ENTRIES(suffix)                                                                                                \
    void rvp_avg_whole_lines_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)  \
    {                                                                                                                  \
        whole_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &bytes_##suffix);                        \
    }                                                                                                                  \
    void rvp_avg_lines_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)        \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &bytes_##suffix, 0, 1);                    \
    }                                                                                                                  \
    void rvp_avg_lines_1_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &bytes_##suffix, rows_of_bytes, 1);        \
    }                                                                                                                  \
    void rvp_avg_lines_2_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &bytes_##suffix, rows_of_quarters, 2);     \
    }                                                                                                                  \
    void rvp_avg_lines_4_##suffix(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line)      \
    {                                                                                                                  \
        any_lines(x, y, scratch, (const struct rvp_pool *)parameters, line, &bytes_##suffix, rows_of_halves, 4);       \
    }

ENTRIES(s8)
ENTRIES(u8)
