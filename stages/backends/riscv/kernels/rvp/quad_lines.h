/* Copies rows of an image into lines: the bytes with padding. Each lane of a register has the words of a different line. */
#pragma once

#include "quads.h"
#include "rvp_intrinsics.h"

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

RVP_INLINE int larger(int a, int b)
{
    return a > b ? a : b;
}

/* A line, as one lane of its registers. */
RVP_INLINE void put_byte(int8_t *line, int at, int value)
{
    line[at / 4 * RVP_WORD_BYTES + at % 4] = (int8_t)value;
}

static void fill_words(int8_t *line, int first, int end, rvp_word fill)
{
    for (int word = first; word < end; word++) {
        rvp_store_lane(line + word * RVP_WORD_BYTES, fill);
    }
}

/* `registers` registers from anywhere, their words one below the other a register apart. Only registers that contain some
 * of the bytes are read.
 */
static void copy_registers(int8_t *line, const int8_t *from, int registers, rvp_word flip)
{
    const uintptr_t shift = (uintptr_t)from % RVP_WORD_BYTES * 8, rest = 8 * RVP_WORD_BYTES - shift;
    const int8_t *next = (const int8_t *)((uintptr_t)from & -(uintptr_t)RVP_WORD_BYTES);
    const int8_t *const end = next + registers * RVP_WORD_BYTES;
    if (shift == 0) {
        while (next != end) {
            const rvp_word x = rvp_load(next) ^ flip;
            next += RVP_WORD_BYTES;
            rvp_store_lane(line, x);
            if (RVP_LANES == 2) {
                rvp_store_lane(line + RVP_WORD_BYTES, x >> (8 * RVP_WORD_BYTES / 2));
            }
            line += RVP_LANES * RVP_WORD_BYTES;
        }
        return;
    }
    rvp_word low = rvp_load(next);
    while (next != end) {
        next += RVP_WORD_BYTES;
        const rvp_word high = rvp_load(next);
        const rvp_word x = (low >> shift | high << rest) ^ flip;
        low = high;
        rvp_store_lane(line, x);
        if (RVP_LANES == 2) {
            rvp_store_lane(line + RVP_WORD_BYTES, x >> (8 * RVP_WORD_BYTES / 2));
        }
        line += RVP_LANES * RVP_WORD_BYTES;
    }
}

RVP_INLINE void put_bytes(int8_t *line, const int8_t *row, int first, int end, rvp_word flip)
{
    int8_t *to = line + first / 4 * RVP_WORD_BYTES + first % 4;
    for (int i = first; i < end;) {
        *to++ = (int8_t)(row[i] ^ (int8_t)flip);
        i++;
        if (i % 4 == 0) {
            to += RVP_WORD_BYTES - 4;
        }
    }
}

/* Positions of image rows in the lines of a lane. A row begins `first` bytes after the first byte of the line (negative:
 * before it) and covers bytes `begin` to `end` of the line.
 */
struct span {
    int first, begin, end;
    int whole;                            /* the first byte of the word in which they begin */
    int registers;                        /* from there to the end */
    rvp_word fill, flip;                  /* in every byte */
    rvp_word fill_first, fill_last;       /* masks: bytes of padding in the words in which they begin and end */
};

RVP_INLINE struct span span_of(int first, const struct rvp_quads *g)
{
    const int begin = larger(first, 0);
    const int end = larger(smaller(first + g->columns * g->channels, 4 * g->line_words), begin);
    struct span s = {.first = first, .begin = begin, .end = end, .whole = begin / 4 * 4};
    s.registers = (end - s.whole + RVP_WORD_BYTES - 1) / RVP_WORD_BYTES;
    s.fill = rvp_splat8(g->fill);
    s.flip = rvp_splat8(g->flip);
    s.fill_first = ((rvp_word)1 << begin % 4 * 8) - 1;
    s.fill_last = end % 4 == 0 ? 0 : ~(((rvp_word)1 << end % 4 * 8) - 1);
    return s;
}

/* Padding in some bytes of a word of a line. */
RVP_INLINE void put_fill(int8_t *line, int byte, rvp_word mask, rvp_word fill)
{
    if (mask != 0) {
        int8_t *const word = line + byte / 4 * RVP_WORD_BYTES;
        rvp_store_lane(word, (rvp_load_lane(word) & ~mask) | (fill & mask));
    }
}

/* A row of an image. If the row has a register before and after the copied bytes, whole registers are copied, and then overwritten with the
 * padding. The last register may end in the next line, or after the last line.
 */
RVP_INLINE void copy_row(int8_t *line, const int8_t *row, const struct span *s, const int8_t *image,
                         const struct rvp_quads *g)
{
    if (s->begin >= s->end) {
        fill_words(line, 0, g->line_words, s->fill);
        return;
    }
    row -= s->first; /* byte i of the line */
    const int8_t *const from = row + s->whole, *const image_end = image + g->rows * g->columns * g->channels;
    if (from - RVP_WORD_BYTES >= image && from + (s->registers + 1) * RVP_WORD_BYTES <= image_end) {
        copy_registers(line + s->whole / 4 * RVP_WORD_BYTES, from, s->registers, s->flip);
        fill_words(line, 0, s->whole / 4, s->fill);
        put_fill(line, s->begin, s->fill_first, s->fill);
        put_fill(line, s->end, s->fill_last, s->fill);
        fill_words(line, (s->end + 3) / 4, g->line_words, s->fill);
        return;
    }
    fill_words(line, 0, (s->begin + 3) / 4, s->fill);
    fill_words(line, s->end / 4, g->line_words, s->fill);
    const int inside = smaller((s->begin + 3) / 4 * 4, s->end), copied = larger(s->end - inside, 0) / RVP_WORD_BYTES;
    put_bytes(line, row, s->begin, inside, s->flip);
    if (copied > 0) {
        copy_registers(line + inside / 4 * RVP_WORD_BYTES, row + inside, copied, s->flip);
    }
    put_bytes(line, row, inside + copied * RVP_WORD_BYTES, s->end, s->flip);
}

/* The channels of a group, of `columns` pixels from `column` on. */
static void copy_group(int8_t *line, const int8_t *row, int column, const struct rvp_quads *g)
{
    const int begin = larger(-column, 0) * g->depth;
    const int end = larger(smaller((g->columns - column) * g->depth, 4 * g->line_words), begin);
    const int8_t *from = row + larger(column, 0) * g->channels;
    const rvp_word flip = rvp_splat8(g->flip);
    fill_words(line, 0, smaller(larger(-column, 0) * g->depth / 4 + 1, g->line_words), rvp_splat8(g->fill));
    fill_words(line, smaller(end / 4, g->line_words), g->line_words, rvp_splat8(g->fill));
    if (g->depth % 4 == 0) {
        int8_t *to = line + begin / 4 * RVP_WORD_BYTES;
        for (int at = begin; at < end; at += g->depth) {
            for (int i = 0; i < g->depth; i += 4) {
                rvp_store_lane(to, rvp_load_lane(from + i) ^ flip);
                to += RVP_WORD_BYTES;
            }
            from += g->channels;
        }
        return;
    }
    for (int at = begin; at < end;) {
        for (int i = 0; i < g->depth && at < end; i++) {
            put_byte(line, at, from[i] ^ g->flip);
            at++;
        }
        from += g->channels;
    }
}

/* `count` lines, whose first is row `row` of the image for lane 0. */
static void fill_lines(const int8_t *x, int8_t *lines, int group, int row, int count, const struct rvp_quads *g)
{
    const int lanes = (g->lane_rows | g->lane_columns | g->lane_groups) != 0 ? RVP_LANES : 1;
    for (int lane = 0; lane < lanes; lane++) {
        const int column = lane * g->lane_columns * g->column_stride - g->left;
        const int8_t *const channel = x + smaller(group + lane * g->lane_groups, g->groups - 1) * g->depth;
        int at = row + lane * g->lane_rows * g->row_stride;
        const struct span span = span_of(-column * g->channels, g);
        int8_t *line = lines + 4 * lane;
        for (int i = 0; i < count; i++) {
            const int8_t *const from = channel + at * g->columns * g->channels;
            if (at < 0 || at >= g->rows) {
                fill_words(line, 0, g->line_words, rvp_splat8(g->fill));
            } else if (g->groups > 1) {
                copy_group(line, from, column, g);
            } else {
                copy_row(line, from, &span, x, g);
            }
            line += g->line_words * RVP_WORD_BYTES;
            at++;
        }
    }
}
