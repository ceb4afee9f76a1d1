/* Transposes of bytes: blocks of four by four in words, narrower strips byte by byte. */
#include "transpose.h"

#include "dsp.h"

/* y[column * to + row] = x[row * from + column] */
struct matrix {
    int32_t rows, columns, to, from;
};

/* Bytes 0 and 2 of two words, alternating: a0 b0 a2 b2. */
DSP_INLINE uint32_t even_bytes(uint32_t a, uint32_t b)
{
    return dsp_low_bytes(a) | dsp_low_bytes(b) << 8;
}

/* The same of bytes 1 and 3. */
DSP_INLINE uint32_t odd_bytes(uint32_t a, uint32_t b)
{
    uint32_t first, second;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(first) : "r"(a));
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(second) : "r"(b));
    return first | second << 8;
}

/*  a0 a1 a2 a3      a0 b0 c0 d0      by halves first: a0 a1 c0 c1 and b0 b1 d0 d1 have what the first two
 *  b0 b1 b2 b3  ->  a1 b1 c1 d1      words of the result need, in the even bytes and in the odd ones
 *  c0 c1 c2 c3      a2 b2 c2 d2
 *  d0 d1 d2 d3      a3 b3 c3 d3  */
DSP_INLINE void block(uint8_t *y, int32_t to, const uint8_t *x, int32_t from)
{
    const uint8_t *const third = x + 2 * from;
    const uint32_t a = dsp_load(x), b = dsp_load(x + from), c = dsp_load(third), d = dsp_load(third + from);
    const uint32_t ac = dsp_low_halves(a, c), bd = dsp_low_halves(b, d);
    const uint32_t ac_after = dsp_high_halves(a, c), bd_after = dsp_high_halves(b, d);
    uint8_t *const after = y + 2 * to;
    dsp_store(y, even_bytes(ac, bd));
    dsp_store(y + to, odd_bytes(ac, bd));
    dsp_store(after, even_bytes(ac_after, bd_after));
    dsp_store(after + to, odd_bytes(ac_after, bd_after));
}

/* At least four rows and four columns. The last blocks may overlap the ones before them. */
DSP_INLINE void blocks(uint8_t *y, const uint8_t *x, const struct matrix *m)
{
    for (int32_t row = 0; row < m->rows; row += 4) {
        const int32_t first = row + 4 <= m->rows ? row : m->rows - 4;
        const uint8_t *in = x + first * m->from;
        uint8_t *out = y + first;
        int32_t left = m->columns;
        for (; left >= 4; left -= 4) {
            block(out, m->to, in, m->from);
            in += 4;
            out += 4 * m->to;
        }
        if (left > 0) {
            block(out - (4 - left) * m->to, m->to, in - (4 - left), m->from);
        }
    }
}

/* A word of a row to four places. */
DSP_INLINE void scatter(uint8_t *y, const uint8_t *x, const struct matrix *m)
{
    for (int32_t row = 0; row < m->rows; row++) {
        const uint8_t *in = x + row * m->from;
        uint8_t *out = y + row;
        int32_t left = m->columns;
        for (; left >= 4; left -= 4) {
            const uint32_t bytes = dsp_load(in);
            uint8_t *const after = out + 2 * m->to;
            out[0] = (uint8_t)bytes;
            out[m->to] = (uint8_t)(bytes >> 8);
            after[0] = (uint8_t)(bytes >> 16);
            after[m->to] = (uint8_t)(bytes >> 24);
            in += 4;
            out += 4 * m->to;
        }
        for (; left > 0; left--) {
            *out = *in++;
            out += m->to;
        }
    }
}

/* A word of a column from four places. */
DSP_INLINE void gather(uint8_t *y, const uint8_t *x, const struct matrix *m)
{
    for (int32_t column = 0; column < m->columns; column++) {
        const uint8_t *in = x + column;
        uint8_t *out = y + column * m->to;
        int32_t left = m->rows;
        for (; left >= 4; left -= 4) {
            const uint8_t *const after = in + 2 * m->from;
            const uint32_t first = in[0] | (uint32_t)in[m->from] << 8;
            dsp_store(out, first | (uint32_t)after[0] << 16 | (uint32_t)after[m->from] << 24);
            in += 4 * m->from;
            out += 4;
        }
        for (; left > 0; left--) {
            *out++ = *in;
            in += m->from;
        }
    }
}

void arm_dsp_transpose(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_step, int32_t x_step, int32_t matrices,
                       int32_t y_matrix, int32_t x_matrix)
{
    const struct matrix m = {rows, columns, y_step, x_step};
    uint8_t *to = y;
    const uint8_t *from = x;
    for (; matrices > 0; matrices--) {
        if (rows >= 4 && columns >= 4) {
            blocks(to, from, &m);
        } else if (columns >= rows) {
            scatter(to, from, &m);
        } else {
            gather(to, from, &m);
        }
        to += y_matrix;
        from += x_matrix;
    }
}
