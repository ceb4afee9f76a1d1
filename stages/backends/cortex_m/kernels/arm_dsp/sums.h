/* Shared by pooling and means: sums of channels over pixels, in 16-bit lanes. */
#pragma once

#include "dsp.h"

enum { SUMS_MOST = 255 }; /* so many bytes fit a sum of 16 bits, signed or unsigned */

/* The pixels: `rows` rows of `columns` pixels. Steps are in bytes. */
struct sums_walk {
    int32_t rows, row_step, columns, column_step;
};

/* Sums of four words: `even` has bytes 0 and 2 of a word, `odd` has bytes 1 and 3. */
struct sums_halves {
    uint32_t even0, odd0, even1, odd1, even2, odd2, even3, odd3;
};

struct sums4 {
    int32_t a, b, c, d;
};

DSP_INLINE int32_t sums_element(const uint8_t *x, int is_unsigned)
{
    return is_unsigned ? (int32_t)*x : (int8_t)*x;
}

DSP_INLINE void sums_add(uint32_t *even, uint32_t *odd, uint32_t bytes, int is_unsigned)
{
    if (is_unsigned) {
        __asm__("uxtab16 %0, %0, %1" : "+r"(*even) : "r"(bytes));
        __asm__("uxtab16 %0, %0, %1, ror #8" : "+r"(*odd) : "r"(bytes));
    } else {
        __asm__("sxtab16 %0, %0, %1" : "+r"(*even) : "r"(bytes));
        __asm__("sxtab16 %0, %0, %1, ror #8" : "+r"(*odd) : "r"(bytes));
    }
}

/* Up to SUMS_MOST pixels; `words` (1 or 4) and `is_unsigned` are constants. */
DSP_INLINE struct sums_halves sums_of_words(const uint8_t *from, const struct sums_walk *walk, int words, int is_unsigned)
{
    struct sums_halves sum = {0, 0, 0, 0, 0, 0, 0, 0};
    const int32_t step = walk->column_step, columns = walk->columns, row_step = walk->row_step;
    for (int32_t rows = walk->rows; rows > 0; rows--) {
        const uint8_t *x = from;
        for (int32_t left = columns; left > 0; left--) {
            sums_add(&sum.even0, &sum.odd0, dsp_load(x), is_unsigned);
            if (words == 4) {
                sums_add(&sum.even1, &sum.odd1, dsp_load(x + 4), is_unsigned);
                sums_add(&sum.even2, &sum.odd2, dsp_load(x + 8), is_unsigned);
                sums_add(&sum.even3, &sum.odd3, dsp_load(x + 12), is_unsigned);
            }
            x += step;
        }
        from += row_step;
    }
    return sum;
}

/* The four sums of a word. */
DSP_INLINE struct sums4 sums_split(uint32_t even, uint32_t odd, int is_unsigned)
{
    if (is_unsigned) {
        return (struct sums4){(uint16_t)even, (uint16_t)odd, (int32_t)(even >> 16), (int32_t)(odd >> 16)};
    }
    return (struct sums4){(int16_t)even, (int16_t)odd, (int32_t)even >> 16, (int32_t)odd >> 16};
}

/* Sums of any number of pixels with at most SUMS_MOST columns. */
DSP_INLINE struct sums4 sums_of_four(const uint8_t *from, const struct sums_walk *walk, int is_unsigned)
{
    const int32_t at_once = SUMS_MOST / walk->columns; /* rows */
    struct sums4 total = {0, 0, 0, 0};
    struct sums_walk part = *walk;
    for (int32_t rows = walk->rows; rows > 0; rows -= at_once) {
        part.rows = rows < at_once ? rows : at_once;
        const struct sums_halves sum = sums_of_words(from, &part, 1, is_unsigned);
        const struct sums4 more = sums_split(sum.even0, sum.odd0, is_unsigned);
        total = (struct sums4){total.a + more.a, total.b + more.b, total.c + more.c, total.d + more.d};
        from += part.rows * part.row_step;
    }
    return total;
}

/* Of one channel. */
DSP_INLINE int32_t sums_of_one(const uint8_t *from, const struct sums_walk *walk, int is_unsigned)
{
    int32_t sum = 0;
    for (int32_t rows = walk->rows; rows > 0; rows--) {
        const uint8_t *x = from;
        for (int32_t left = walk->columns; left > 0; left--) {
            sum += sums_element(x, is_unsigned);
            x += walk->column_step;
        }
        from += walk->row_step;
    }
    return sum;
}

/* The lower bytes of four values. */
DSP_INLINE uint32_t sums_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return dsp_low_bytes(dsp_low_halves(a, c)) | dsp_low_bytes(dsp_low_halves(b, d)) << 8;
}
