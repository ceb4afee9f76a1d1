/* Copies runs of bytes at any alignment, in whole words, for cores that trap on unaligned words.
 *
 * Words are stored whole and aligned. In the first and the last word only the bytes of the run change:
 *
 *     y   . . . a | b c d e | f g . .        . is read and written unchanged
 *
 * If x and y have different alignments, each word of y is combined from two words of x. `late` bytes of a word of x belong to the
 * word of y before it.
 *
 *     x   . a b c | d e f g |                late = 2, words of y from `a b c d` on
 *
 * Only words of x that contain a byte of the run are read. So no read leaves the memory of the run.
 */
#pragma once

#include <stdint.h>

typedef uintptr_t __attribute__((may_alias)) word;
typedef uint32_t __attribute__((may_alias)) half_word;
typedef uint16_t __attribute__((may_alias)) quarter;

enum {
    WORD = sizeof(word),
    /* Runs with fewer bytes, or fewer pairs of bytes, are copied one by one. These limits were measured. They are lower if each
     * run of y begins at a word, and if x and y have the same alignment in all runs. On 32 bits, a pair takes 2.4
     * instructions, and 2.2 to 3.2 as part of words. */
    SHORT = WORD == 8 ? 28 : 32,
    SHORT_ALIGNED = WORD == 8 ? 16 : 28,
    SHORT_PAIRS = WORD == 8 ? 36 : 128,
    SHORT_PAIRS_ALIGNED = WORD == 8 ? 16 : 128,
    SHORT_ALIKE = 16,
    /* Limits for rows of pairs of which some rows have the same alignment: pairs per row, and rows, from which words are copied. */
    SHORT_TURNS = 9,
    LONG_TURNS = WORD == 8 ? 80 : 128,
    ROWS_FOR_TURNS = 16,
    ROWS_FOR_WORDS = WORD == 8 ? 28 : 0,
};

#define COPIES_INLINE static inline __attribute__((always_inline))

/* Ones in the bits of the first `bytes` < WORD bytes. */
COPIES_INLINE word first_bytes(uintptr_t bytes)
{
    return ~(~(word)0 << 8 * bytes);
}

/* The bytes of v that the mask selects. */
COPIES_INLINE void put(word *to, word v, word mask)
{
    *to ^= (*to ^ v) & mask;
}

enum source { VALUE, ALIGNED, SHIFTED };

/* The source of a run: a value, or words of x. `held` is the last word that was read. */
struct stream {
    word held;
    const word *x;
    uintptr_t down, up; /* bits */
};

/* The next word of y. SHIFTED: reads a word only if it is not after `last`. */
COPIES_INLINE word next(struct stream *s, const void *last, enum source source)
{
    if (source == VALUE) {
        return s->held;
    }
    if (source == ALIGNED) {
        return *s->x++;
    }
    const word before = s->held;
    s->held = (uintptr_t)++s->x <= (uintptr_t)last ? *s->x : 0;
    return before >> s->down | s->held << s->up;
}

/* `count` complete words; a literal at each call. */
COPIES_INLINE void put_few(word *to, int count, struct stream *s, enum source source)
{
    const word held = s->held;
    const word *const x = s->x;
    if (source == VALUE) {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            to[i] = held;
        }
        return;
    }
    const word *const from = source == ALIGNED ? x : x + 1;
    const word a = from[0], b = count > 1 ? from[1] : a, c = count > 2 ? from[2] : b, d = count > 3 ? from[3] : c;
    const word last[] = {a, b, c, d}, before[] = {held, a, b, c};
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        to[i] = source == ALIGNED ? last[i] : before[i] >> s->down | last[i] << s->up;
    }
    s->held = d;
    s->x = x + count;
}

COPIES_INLINE word *put_words(word *to, uintptr_t count, struct stream *s, enum source source)
{
    for (const word *const end = to + (count & ~(uintptr_t)3); to != end; to += 4) {
        put_few(to, 4, s, source);
    }
    if ((count & 2) != 0) {
        put_few(to, 2, s, source);
        to += 2;
    }
    if ((count & 1) != 0) {
        put_few(to, 1, s, source);
        to++;
    }
    return to;
}

/* A run of `bytes` > 0 bytes at y. Its source begins with the bytes that share a word of y with the first byte. */
COPIES_INLINE void put_run(uint8_t *y, uintptr_t bytes, struct stream *s, const void *last, enum source source)
{
    const uintptr_t before = (uintptr_t)y % WORD;
    word *to = (word *)(void *)(y - before);
    bytes += before;
    if (before != 0) {
        const word behind = ~first_bytes(before), v = next(s, last, source);
        if (bytes < WORD) {
            put(to, v, behind & first_bytes(bytes));
            return;
        }
        put(to++, v, behind);
        bytes -= WORD;
    }
    to = put_words(to, bytes / WORD, s, source);
    if (bytes % WORD != 0) {
        put(to, next(s, last, source), first_bytes(bytes % WORD));
    }
}

COPIES_INLINE void copy_run(uint8_t *y, const uint8_t *x, int32_t bytes)
{
    const uintptr_t before = (uintptr_t)y % WORD, late = ((uintptr_t)x - before) % WORD;
    struct stream s = {.x = (const word *)(const void *)(x - before - late), .down = 8 * late, .up = 8 * (WORD - late)};
    const uint8_t *const last = x + bytes - 1;
    if (late == 0) {
        put_run(y, (uintptr_t)bytes, &s, last, ALIGNED);
    } else {
        s.held = before + late < WORD ? *s.x : 0;
        put_run(y, (uintptr_t)bytes, &s, last, SHIFTED);
    }
}

/* A separate function, because it is long. */
static __attribute__((noinline)) void copies_runs(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step,
                                                  int32_t x_step)
{
    uint8_t *to = y;
    for (const uint8_t *from = x; rows > 0; rows--, to += y_step, from += x_step) {
        copy_run(to, from, bytes);
    }
}

/* Rows of `count` words of one type, all aligned. Several rows of up to `most` of them (8 or 12) are copied without a loop.
 * A function has either loops of loops or none, so that few registers are saved. */
#define ROWS_OF(name, type, most)                                                                                      \
    COPIES_INLINE void name##_eight(type *t, const type *s, int32_t count)                                             \
    {                                                                                                                  \
        type held[8];                                                                                                  \
        _Pragma("GCC unroll 8")                                                                                        \
        for (int32_t i = 0; i < count; i++)                                                                            \
            held[i] = s[i];                                                                                            \
        _Pragma("GCC unroll 8")                                                                                        \
        for (int32_t i = 0; i < count; i++)                                                                            \
            t[i] = held[i];                                                                                            \
    }                                                                                                                  \
    COPIES_INLINE void name##_few(type *t, const type *s, int32_t count)                                               \
    {                                                                                                                  \
        name##_eight(t, s, count < 8 ? count : 8);                                                                     \
        if (count > 8)                                                                                                 \
            name##_eight(t + 8, s + 8, count - 8);                                                                     \
    }                                                                                                                  \
    COPIES_INLINE void name##_rows(char *y, const char *x, int32_t rows, int32_t count, int32_t y_step, int32_t x_step)\
    {                                                                                                                  \
        const char *const end = y + rows * y_step;                                                                     \
        do {                                                                                                           \
            name##_few((type *)(void *)y, (const type *)(const void *)x, count);                                       \
            y += y_step, x += x_step;                                                                                  \
        } while (y != end);                                                                                            \
    }                                                                                                                  \
    COPIES_INLINE void name##_eights(type *t, const type *s, int32_t count)                                            \
    {                                                                                                                  \
        const type *const end = s + count;                                                                             \
        do {                                                                                                           \
            name##_few(t, s, 4);                                                                                       \
            name##_few(t + 4, s + 4, 4);                                                                               \
            s += 8, t += 8;                                                                                            \
        } while (s != end);                                                                                            \
    }                                                                                                                  \
    COPIES_INLINE void name##_row(type *t, const type *s, int32_t count)                                               \
    {                                                                                                                  \
        for (const type *const end = s + (count & -8); s != end; s += 8, t += 8) {                                     \
            name##_few(t, s, 4);                                                                                       \
            name##_few(t + 4, s + 4, 4);                                                                               \
        }                                                                                                              \
        if ((count & 4) != 0) {                                                                                        \
            name##_few(t, s, 4);                                                                                       \
            s += 4, t += 4;                                                                                            \
        }                                                                                                              \
        if ((count & 2) != 0) {                                                                                        \
            name##_few(t, s, 2);                                                                                       \
            s += 2, t += 2;                                                                                            \
        }                                                                                                              \
        if ((count & 1) != 0)                                                                                          \
            name##_few(t, s, 1);                                                                                       \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_long(char *y, const char *x, int32_t rows, int32_t count,             \
                                                      int32_t y_step, int32_t x_step)                                  \
    {                                                                                                                  \
        if (count > 0 && count % 8 == 0) {                                                                             \
            for (; rows > 0; rows--, y += y_step, x += x_step)                                                         \
                name##_eights((type *)(void *)y, (const type *)(const void *)x, count);                                \
            return;                                                                                                    \
        }                                                                                                              \
        for (; rows > 0; rows--, y += y_step, x += x_step)                                                             \
            name##_row((type *)(void *)y, (const type *)(const void *)x, count);                                       \
    }                                                                                                                  \
    static __attribute__((noinline)) void name(char *y, const char *x, int32_t rows, int32_t count, int32_t y_step,    \
                                               int32_t x_step)                                                         \
    {                                                                                                                  \
        if (rows == 1) {                                                                                               \
            name##_row((type *)(void *)y, (const type *)(const void *)x, count);                                       \
            return;                                                                                                    \
        }                                                                                                              \
        switch (count) {                                                                                               \
        case 1: name##_rows(y, x, rows, 1, y_step, x_step); return;                                                    \
        case 2: name##_rows(y, x, rows, 2, y_step, x_step); return;                                                    \
        case 3: name##_rows(y, x, rows, 3, y_step, x_step); return;                                                    \
        case 4: name##_rows(y, x, rows, 4, y_step, x_step); return;                                                    \
        case 5: name##_rows(y, x, rows, 5, y_step, x_step); return;                                                    \
        case 6: name##_rows(y, x, rows, 6, y_step, x_step); return;                                                    \
        case 7: name##_rows(y, x, rows, 7, y_step, x_step); return;                                                    \
        case 8: name##_rows(y, x, rows, 8, y_step, x_step); return;                                                    \
        default: break;                                                                                                \
        }                                                                                                              \
        if (most == 12) {                                                                                              \
            switch (count) {                                                                                           \
            case 9: name##_rows(y, x, rows, 9, y_step, x_step); return;                                                \
            case 10: name##_rows(y, x, rows, 10, y_step, x_step); return;                                              \
            case 11: name##_rows(y, x, rows, 11, y_step, x_step); return;                                              \
            case 12: name##_rows(y, x, rows, 12, y_step, x_step); return;                                              \
            default: break;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        name##_long(y, x, rows, count, y_step, x_step);                                                                \
    }

ROWS_OF(rows_of_bytes, uint8_t, 12)
ROWS_OF(rows_of_quarters, quarter, 8)
ROWS_OF(rows_of_halves, half_word, 8)
ROWS_OF(rows_of_words, word, 8)

/* Rows of pairs of bytes with the same alignment in words of `size` bytes. Copies these words if x and y have the same alignment,
 * otherwise words of four bytes. Separate passes copy the pairs before and after the words. */
COPIES_INLINE void rows_alike(char *y, const char *x, int32_t rows, int32_t pairs, int32_t y_step, int32_t x_step, int32_t size)
{
    const uintptr_t apart = (uintptr_t)y - (uintptr_t)x;
    if (apart % 4 != 0) {
        rows_of_quarters(y, x, rows, pairs, y_step, x_step);
        return;
    }
    const int32_t each = size == 8 && apart % 8 == 0 ? 4 : 2;
    const int32_t before = (int32_t)(-(uintptr_t)y / 2) & (each - 1), behind = (pairs - before) & (each - 1);
    const int32_t within = pairs - before - behind;
    if (before > 0) {
        rows_of_quarters(y, x, rows, before, y_step, x_step);
    }
    y += 2 * before, x += 2 * before;
    if (2 * each == WORD) {
        rows_of_words(y, x, rows, within / (WORD / 2), y_step, x_step);
    } else {
        rows_of_halves(y, x, rows, within / 2, y_step, x_step);
    }
    if (behind > 0) {
        rows_of_quarters(y + 2 * within, x + 2 * within, rows, behind, y_step, x_step);
    }
}

/* Rows of pairs of bytes. Every second row has the alignment of the first in words of four bytes, every fourth in words of eight. */
static __attribute__((noinline)) void rows_in_turns(char *y, const char *x, int32_t rows, int32_t pairs, int32_t y_step,
                                                    int32_t x_step)
{
    const int32_t size = WORD == 8 && rows >= ROWS_FOR_WORDS ? 8 : 4, turns = size / 2;
    for (int32_t turn = 0; turn < turns; turn++, y += y_step, x += x_step) {
        rows_alike(y, x, (rows - turn + turns - 1) / turns, pairs, turns * y_step, turns * x_step, size);
    }
}

/* `apart` is the difference of the steps of x and y. */
COPIES_INLINE int goes_in_turns(int32_t rows, int32_t pairs, int32_t apart)
{
    return rows >= ROWS_FOR_TURNS && pairs >= SHORT_TURNS && pairs < LONG_TURNS && apart % 4 != 0;
}

/* Whether runs of so many elements of 1 or 2 bytes are copied one by one: merging words takes no fewer instructions for
 * those. `apart` has the differences of the alignments of x and y, `y_places` the alignments of y. */
COPIES_INLINE int is_short(int32_t elements, int32_t item_bytes, uintptr_t y_places, uintptr_t apart)
{
    if (apart % WORD == 0) {
        return elements < SHORT_ALIKE;
    }
    if (item_bytes == 2) {
        return elements < (y_places % WORD == 0 ? SHORT_PAIRS_ALIGNED : SHORT_PAIRS);
    }
    return elements < (y_places % WORD == 0 ? SHORT_ALIGNED : SHORT);
}

/* Steps of a single row are its bytes, or 0. */
COPIES_INLINE void copies_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step)
{
    const uintptr_t y_places = (uintptr_t)y | (uintptr_t)y_step;
    const uintptr_t places = y_places | (uintptr_t)x | (uintptr_t)x_step | (uintptr_t)bytes;
    const uintptr_t apart = ((uintptr_t)y - (uintptr_t)x) | ((uintptr_t)y_step - (uintptr_t)x_step);
    const uint32_t size = (uint32_t)bytes;
    if (places % WORD == 0) {
        rows_of_words(y, x, rows, (int32_t)(size / WORD), y_step, x_step);
    } else if (places % 4 == 0) {
        rows_of_halves(y, x, rows, (int32_t)(size / 4), y_step, x_step);
    } else if (places % 2 == 0 && goes_in_turns(rows, (int32_t)(size / 2), y_step - x_step)) {
        rows_in_turns(y, x, rows, (int32_t)(size / 2), y_step, x_step);
    } else if (places % 2 == 0 && is_short((int32_t)(size / 2), 2, y_places, apart)) {
        rows_of_quarters(y, x, rows, (int32_t)(size / 2), y_step, x_step);
    } else if (is_short(bytes, 1, y_places, apart)) {
        rows_of_bytes(y, x, rows, bytes, y_step, x_step);
    } else {
        copies_runs(y, x, rows, bytes, y_step, x_step);
    }
}

COPIES_INLINE void copies_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step)
{
    const word all = (word)(uint8_t)value * (~(word)0 / 255);
    uint8_t *to = y;
    for (; rows > 0; rows--, to += step) {
        if (bytes <= 3) {
            to[0] = (uint8_t)value;
            if (bytes > 1)
                to[1] = (uint8_t)value;
            if (bytes > 2)
                to[2] = (uint8_t)value;
            continue;
        }
        struct stream s = {.held = all};
        put_run(to, (uintptr_t)bytes, &s, 0, VALUE);
    }
}

/* A row of pixels of `count` neighbours of one type, all aligned. */
#define PIXELS_OF(name, type, row)                                                                                     \
    COPIES_INLINE void name(char *y, const char *x, const int32_t *columns, int32_t width, int32_t count)              \
    {                                                                                                                  \
        type *t = (type *)(void *)y;                                                                                   \
        for (const int32_t *const end = columns + width; columns != end; columns++, t += count) {                      \
            row(t, (const type *)(const void *)x + *columns * count, count);                                           \
        }                                                                                                              \
    }

PIXELS_OF(pixels_of_bytes, uint8_t, rows_of_bytes_row)
PIXELS_OF(pixels_of_halves, half_word, rows_of_halves_row)
PIXELS_OF(pixels_of_words, word, rows_of_words_row)

COPIES_INLINE void pixels(char *y, const char *x, const int32_t *columns, int32_t width, int32_t bytes, uintptr_t places)
{
    if (places % WORD == 0) {
        pixels_of_words(y, x, columns, width, bytes / WORD);
    } else if (places % 4 == 0) {
        pixels_of_halves(y, x, columns, width, bytes / 4);
    } else if (bytes == 1) {
        pixels_of_bytes(y, x, columns, width, 1);
    } else if (bytes == 3) {
        pixels_of_bytes(y, x, columns, width, 3);
    } else if (bytes < 12) {
        pixels_of_bytes(y, x, columns, width, bytes);
    } else {
        for (int32_t ox = 0; ox < width; ox++, y += bytes) {
            copies_runs(y, x + columns[ox] * bytes, 1, bytes, 0, 0);
        }
    }
}

COPIES_INLINE void copies_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
                   int32_t bytes, int32_t x_step)
{
    const int32_t row_bytes = width * bytes;
    const uintptr_t places = (uintptr_t)y | (uintptr_t)x | (uintptr_t)bytes | (uintptr_t)x_step;
    char *to = y;
    for (int32_t oy = 0; oy < height; oy++, to += row_bytes) {
        if (oy > 0 && rows[oy] == rows[oy - 1]) {
            copies_runs(to, to - row_bytes, 1, row_bytes, 0, 0);
        } else {
            pixels(to, (const char *)x + rows[oy] * x_step, columns, width, bytes, places);
        }
    }
}
