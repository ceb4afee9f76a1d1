/* LSTM of int16, one cell at a time. */
#include "lstm16.h"

#include <string.h>

#include "requantize.h"

static int32_t clamp16(int64_t x)
{
    return x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : (int32_t)x;
}

static int32_t scaled_sum(int64_t sum, const int16_t *x, const int8_t *w, int32_t count, const int32_t *scale)
{
    for (int32_t k = 0; k < count; k++) {
        sum += x[k] * w[k];
    }
    return clamp16((sum * scale[0] + ((int64_t)1 << (14 - scale[1]))) >> (15 - scale[1]));
}

static int32_t product(int32_t a, int32_t b, int32_t multiplier, int32_t shift)
{
    return clamp16(fl_requantize_double(a * b, multiplier, shift));
}

/* A line between two entries of the table, with `bits` below an entry; `most` beyond it. */
static int32_t line(int32_t size, const int32_t *table, int32_t bits, int32_t most)
{
    const int32_t i = size >> bits;
    return i >= 255 ? most : table[i] * (1 << bits) + (size & ((1 << bits) - 1)) * (table[i + 1] - table[i]);
}

static int32_t sigmoid(int32_t gate, const int32_t *table)
{
    const int32_t d = 3 * gate;
    const int32_t r = line(d < 0 ? -d : d, table, 9, INT16_MAX * (1 << 10));
    return (d < 0 ? (1 << 25) - r + (1 << 9) - 1 : r + (1 << 9)) >> 10;
}

static int32_t hyperbolic_tangent(int32_t x, const int32_t *table, int32_t multiplier, int32_t shift)
{
    const int32_t d = (x * multiplier + (1 << shift >> 1)) >> shift;
    const int32_t r = line(d < 0 ? -d : d, table, 8, UINT16_MAX * (1 << 8));
    return (d < 0 ? (1 << 23) - r + (1 << 7) - 1 : r - (1 << 23) + (1 << 7)) >> 8;
}

void fl_lstm_s16(const int16_t *x, const int8_t *input, const int8_t *recurrent, const int64_t *bias,
                 const int32_t *scales, const int32_t *table, int16_t *hidden, int16_t *cell, int16_t *y,
                 const void *parameters)
{
    const struct fl_lstm16 *p = parameters;
    for (int32_t u = 0; u < p->units; u++) {
        int32_t entering = 0, kept = 0, given = 0;
        for (int32_t k = 0; k < 4; k++) {
            const int32_t ahead = scaled_sum(*bias++, x, input, p->depth, scales + 4 * k);
            const int32_t gate = clamp16(ahead + scaled_sum(0, hidden, recurrent, p->units, scales + 4 * k + 2));
            switch (k) {
            case 0:
                entering = sigmoid(gate, table);
                break;
            case 1:
                kept = product(cell[u], sigmoid(gate, table), 1 << 30, -14);
                break;
            case 2:
                entering = product(entering, hyperbolic_tangent(gate, table, 3, 0), p->entering, p->entering_shift);
                break;
            default:
                given = sigmoid(gate, table);
            }
            input += p->depth;
            recurrent += p->units;
        }
        cell[u] = (int16_t)fl_clamp(clamp16(kept + entering), -p->clip, p->clip);
        given *= hyperbolic_tangent(cell[u], table, p->tanh_multiplier, p->tanh_shift);
        y[u] = (int16_t)product(given, 1, p->multiplier, p->shift);
    }
    memcpy(hidden, y, (size_t)p->units * sizeof y[0]);
}
