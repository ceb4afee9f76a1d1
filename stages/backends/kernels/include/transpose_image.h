/* Copies single bytes along two axes: a transpose. Elements of a row are consecutive in x, elements of a column are consecutive in y.
 *
 * If x is aligned to four bytes, blocks of four rows by W columns are copied. Four registers hold W / 4 blocks of 4x4 bytes, one in
 * each lane. `transpose_lanes` transposes them. The result is a word with four rows for each column:
 *
 *          x                lanes             y
 *     a0 a1 a2 a3 ...    a0 b0 c0 d0     column 0   a0 b0 c0 d0
 *     b0 b1 b2 b3 ...    a1 b1 c1 d1     column 1   a1 b1 c1 d1
 *     c0 c1 c2 c3 ...    a2 b2 c2 d2     ...
 *     d0 d1 d2 d3 ...    a3 b3 c3 d3
 *
 * If y is not aligned to four bytes, the word of a column is stored in parts: two of two bytes, or one, two and one. The kind is the
 * same for all blocks of rows, because these are four bytes apart.
 *
 * All other elements are copied byte by byte: along the longer axis, for four elements of the other axis at once.
 */
#pragma once

#include <stdint.h>

typedef uintptr_t __attribute__((may_alias)) transpose_word;
typedef uint32_t __attribute__((may_alias)) transpose_lane;
typedef uint16_t __attribute__((may_alias)) transpose_pair;

enum { TRANSPOSE_W = sizeof(transpose_word) };

#define TRANSPOSE_INLINE static inline __attribute__((always_inline))

/* Transposes the 4x4 bytes of each lane: byte i of word j becomes byte j of word i. The including file defines it. */
TRANSPOSE_INLINE void transpose_lanes(transpose_word *a, transpose_word *b, transpose_word *c, transpose_word *d);

TRANSPOSE_INLINE transpose_word load_columns(const int8_t *x, int whole)
{
    if (whole) {
        return *(const transpose_word *)(const void *)x;
    }
    const transpose_lane *const lanes = (const transpose_lane *)(const void *)x;
    return lanes[0] | (transpose_word)((uint64_t)lanes[1] << 32);
}

/* How the four rows of a column are stored. */
enum store { WORDS, PAIRS, BYTES_AROUND_A_PAIR };

TRANSPOSE_INLINE void store_rows(int8_t *y, uint32_t v, enum store store)
{
    if (store == WORDS) {
        *(transpose_lane *)(void *)y = v;
    } else if (store == PAIRS) {
        *(transpose_pair *)(void *)y = (uint16_t)v;
        *(transpose_pair *)(void *)(y + 2) = (uint16_t)(v >> 16);
    } else {
        y[0] = (int8_t)v;
        *(transpose_pair *)(void *)(y + 1) = (uint16_t)(v >> 8);
        y[3] = (int8_t)(v >> 24);
    }
}

/* The first column of each lane's four; the next is y_column on. */
TRANSPOSE_INLINE void store_column(int8_t *y, transpose_word lanes, int32_t y_column, enum store store)
{
    store_rows(y, (uint32_t)lanes, store);
    if (TRANSPOSE_W == 8) {
        store_rows(y + 4 * y_column, (uint32_t)((uint64_t)lanes >> 32), store);
    }
}

/* Four rows and `count` times W columns; `whole` words of x are aligned, otherwise their lanes. Columns are stored as `even`
 * and `odd`, by their number. */
TRANSPOSE_INLINE void block_row(int8_t *y, const int8_t *x, int32_t count, int32_t y_column, int32_t x_row, int whole,
                                enum store even, enum store odd)
{
    const int8_t *x1 = x + x_row, *x2 = x1 + x_row, *x3 = x2 + x_row;
    for (const int8_t *const end = x + count * TRANSPOSE_W; x != end;) {
        transpose_word a = load_columns(x, whole), b = load_columns(x1, whole);
        transpose_word c = load_columns(x2, whole), d = load_columns(x3, whole);
        transpose_lanes(&a, &b, &c, &d);
        int8_t *to = y;
        store_column(to, a, y_column, even);
        store_column(to += y_column, b, y_column, odd);
        store_column(to += y_column, c, y_column, even);
        store_column(to += y_column, d, y_column, odd);
        x += TRANSPOSE_W, x1 += TRANSPOSE_W, x2 += TRANSPOSE_W, x3 += TRANSPOSE_W;
        y += TRANSPOSE_W * y_column;
    }
}

/* Separate functions, so that all their values are in registers. */
#define BLOCK_ROWS(name, whole, even, odd)                                                                             \
    static __attribute__((noinline)) void name(int8_t *y, const int8_t *x, int32_t rows, int32_t count,                \
                                               int32_t y_column, int32_t x_row)                                        \
    {                                                                                                                  \
        for (; rows > 0; rows--, y += 4, x += 4 * x_row) {                                                             \
            block_row(y, x, count, y_column, x_row, whole, even, odd);                                                 \
        }                                                                                                              \
    }

BLOCK_ROWS(words_of_words, 1, WORDS, WORDS)
BLOCK_ROWS(words_of_lanes, 0, WORDS, WORDS)
BLOCK_ROWS(pairs_of_words, 1, PAIRS, PAIRS)
BLOCK_ROWS(pairs_of_lanes, 0, PAIRS, PAIRS)
BLOCK_ROWS(pairs_first_of_words, 1, PAIRS, BYTES_AROUND_A_PAIR)
BLOCK_ROWS(pairs_first_of_lanes, 0, PAIRS, BYTES_AROUND_A_PAIR)
BLOCK_ROWS(bytes_first_of_words, 1, BYTES_AROUND_A_PAIR, PAIRS)
BLOCK_ROWS(bytes_first_of_lanes, 0, BYTES_AROUND_A_PAIR, PAIRS)

/* Bytes at odd addresses in all columns are copied elsewhere. */
TRANSPOSE_INLINE int is_in_blocks(int8_t *y, const int8_t *x, int32_t columns, int32_t y_column, int32_t x_row)
{
    return columns >= TRANSPOSE_W && ((uintptr_t)x | (uintptr_t)x_row) % 4 == 0
        && (((uintptr_t)y % 2 == 0) || y_column % 2 != 0);
}

TRANSPOSE_INLINE void block_rows(int8_t *y, const int8_t *x, int32_t rows, int32_t count, int32_t y_column, int32_t x_row)
{
    const int whole = TRANSPOSE_W == 4 || ((uintptr_t)x | (uintptr_t)x_row) % TRANSPOSE_W == 0;
    if (((uintptr_t)y | (uintptr_t)y_column) % 4 == 0) {
        (whole ? words_of_words : words_of_lanes)(y, x, rows, count, y_column, x_row);
    } else if (y_column % 2 == 0) {
        (whole ? pairs_of_words : pairs_of_lanes)(y, x, rows, count, y_column, x_row);
    } else if ((uintptr_t)y % 2 == 0) {
        (whole ? pairs_first_of_words : pairs_first_of_lanes)(y, x, rows, count, y_column, x_row);
    } else {
        (whole ? bytes_first_of_words : bytes_first_of_lanes)(y, x, rows, count, y_column, x_row);
    }
}

/* `lanes` neighbouring rows of y, along `count` neighbouring columns of x. */
TRANSPOSE_INLINE void along_columns(int8_t *y, const int8_t *x, int32_t lanes, int32_t count, int32_t y_column, int32_t x_row)
{
    const int8_t *from[4];
    for (int32_t n = 0; n < 4; n++) {
        from[n] = x + (n < lanes ? n : 0) * x_row;
    }
    for (; count >= 4; count -= 4) {
#pragma GCC unroll 4
        for (int32_t step = 0; step < 4; step++) {
#pragma GCC unroll 4
            for (int32_t n = 0; n < lanes; n++) {
                y[n] = from[n][step];
            }
            y += y_column;
        }
#pragma GCC unroll 4
        for (int32_t n = 0; n < lanes; n++) {
            from[n] += 4;
        }
    }
    for (; count > 0; count--) {
#pragma GCC unroll 4
        for (int32_t n = 0; n < lanes; n++) {
            y[n] = *from[n]++;
        }
        y += y_column;
    }
}

/* `lanes` neighbouring columns of x, along `count` neighbouring rows of y. */
TRANSPOSE_INLINE void along_rows(int8_t *y, const int8_t *x, int32_t lanes, int32_t count, int32_t y_column, int32_t x_row)
{
    int8_t *to[4];
    for (int32_t n = 0; n < 4; n++) {
        to[n] = y + (n < lanes ? n : 0) * y_column;
    }
    for (; count >= 4; count -= 4) {
#pragma GCC unroll 4
        for (int32_t step = 0; step < 4; step++) {
#pragma GCC unroll 4
            for (int32_t n = 0; n < lanes; n++) {
                to[n][step] = x[n];
            }
            x += x_row;
        }
#pragma GCC unroll 4
        for (int32_t n = 0; n < lanes; n++) {
            to[n] += 4;
        }
    }
    for (; count > 0; count--) {
#pragma GCC unroll 4
        for (int32_t n = 0; n < lanes; n++) {
            *to[n]++ = x[n];
        }
        x += x_row;
    }
}

static void bytes_along_columns(int8_t *y, const int8_t *x, int32_t rows, int32_t columns, int32_t y_column, int32_t x_row)
{
    for (; rows >= 4; rows -= 4, y += 4, x += 4 * x_row) {
        along_columns(y, x, 4, columns, y_column, x_row);
    }
    if (rows == 3) {
        along_columns(y, x, 3, columns, y_column, x_row);
    } else if (rows == 2) {
        along_columns(y, x, 2, columns, y_column, x_row);
    } else if (rows == 1) {
        along_columns(y, x, 1, columns, y_column, x_row);
    }
}

static void bytes_along_rows(int8_t *y, const int8_t *x, int32_t rows, int32_t columns, int32_t y_column, int32_t x_row)
{
    for (; columns >= 4; columns -= 4, x += 4, y += 4 * y_column) {
        along_rows(y, x, 4, rows, y_column, x_row);
    }
    if (columns == 3) {
        along_rows(y, x, 3, rows, y_column, x_row);
    } else if (columns == 2) {
        along_rows(y, x, 2, rows, y_column, x_row);
    } else if (columns == 1) {
        along_rows(y, x, 1, rows, y_column, x_row);
    }
}

/* Rows that are neighbours in y, columns that are neighbours in x. */
TRANSPOSE_INLINE void transpose_bytes(int8_t *y, const int8_t *x, int32_t rows, int32_t columns, int32_t y_column, int32_t x_row)
{
    if (is_in_blocks(y, x, columns, y_column, x_row)) {
        const int32_t blocks = columns / TRANSPOSE_W, whole = blocks * TRANSPOSE_W;
        if (whole != columns) {
            bytes_along_rows(y + whole * y_column, x + whole, rows & -4, columns - whole, y_column, x_row);
        }
        block_rows(y, x, rows / 4, blocks, y_column, x_row);
        y += rows & -4, x += (rows & -4) * x_row, rows &= 3;
    }
    if (rows == 0) {
        return;
    }
    if (rows <= columns) {
        bytes_along_columns(y, x, rows, columns, y_column, x_row);
    } else {
        bytes_along_rows(y, x, rows, columns, y_column, x_row);
    }
}

/* Bytes from one element to the next along two axes. */
struct transpose_steps {
    int32_t y_row, y_column, x_row, x_column;
};

/* For all cases other than neighbours along one axis in y and along the other in x. */
static void pick_bytes(int8_t *y, const int8_t *x, int32_t rows, int32_t columns, struct transpose_steps by)
{
    for (; rows > 0; rows--, y += by.y_row, x += by.x_row) {
        int8_t *to = y;
        const int8_t *from = x;
        int32_t left = columns;
        for (; left >= 4; left -= 4) {
#pragma GCC unroll 4
            for (int n = 0; n < 4; n++, to += by.y_column, from += by.x_column) {
                *to = *from;
            }
        }
        for (; left > 0; left--, to += by.y_column, from += by.x_column) {
            *to = *from;
        }
    }
}

TRANSPOSE_INLINE void transpose_any(int8_t *y, const int8_t *x, int32_t rows, int32_t columns, struct transpose_steps by)
{
    if (by.y_row == 1 && by.x_column == 1) {
        transpose_bytes(y, x, rows, columns, by.y_column, by.x_row);
    } else {
        pick_bytes(y, x, rows, columns, by);
    }
}
