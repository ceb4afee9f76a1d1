/* Shared by all families: a step of an LSTM on int8 for one row.
 *
 * The including file defines
 *
 *   LSTM_CHUNK  elements of a row that are multiplied at a time
 *   LSTM_WIDE   bytes of an element in the copy of the row
 *   lstm_row    (to, from, count): copies a row and pads it with zeros to a multiple of LSTM_CHUNK
 *   lstm_sums   (row, weights, chunks, bias, sums): sums[k] = bias[k] + row . weights of gate k, k below 4
 *
 * and may define LSTM_SCALED(x, multiplier, shift, added) and LSTM_RESULT, which are lstm_scaled, LSTM_INT16(x), which saturates, LSTM_GATES instead
 * of lstm_gates, and LSTM_CELLS instead of lstm_cells.
 *
 *      gates[k] = clamp(clamp(M(ahead[k])) + M(back[k]))       ahead = bias[0] + input . x, back = bias[1] + recurrent . hidden
 *      cell     = cell * sigmoid(forget) + sigmoid(input) * tanh(cell gate)
 *      y        = sigmoid(output) * tanh(cell), which is the next hidden
 *
 * input, recurrent  [units][chunks][4][LSTM_CHUNK]: gates in the order input, forget, cell, output; rows are padded with zeros
 * bias              [units][2][4]: for the products of x and of hidden, including the terms of zero points
 * scales            [4][4]: multipliers and shifts for the products of x, then for those of hidden
 * scratch           [LSTM_BLOCK][2][4] sums, both rows, and gates [4][units] as int16, each aligned to 16 bytes
 * clip              bound of the cells; 32768: none
 */
#pragma once

#include <stddef.h>

#include "requantize.h"
#include "sigmoid16.h"

struct fl_lstm {
    int32_t units, depth, cell_bits, clip, multiplier, shift, zero_point;
};

#ifndef LSTM_INT16
#define LSTM_INT16 lstm_int16
S16_FUNCTION int32_t lstm_int16(int32_t x)
{
    return fl_clamp(x, INT16_MIN, INT16_MAX);
}
#endif

/* Bytes of the copy of a row, and chunks of it. */
S16_FUNCTION int32_t lstm_chunks(int32_t count)
{
    return (count + LSTM_CHUNK - 1) / LSTM_CHUNK;
}

S16_FUNCTION int32_t lstm_bytes(int32_t count)
{
    return (lstm_chunks(count) * LSTM_CHUNK * LSTM_WIDE + 15) & ~15;
}

enum { LSTM_BLOCK = 16 }; /* cells whose sums are in scratch at a time */

#ifndef LSTM_SCALED
#define LSTM_SCALED lstm_scaled
#define LSTM_RESULT lstm_scaled
S16_FUNCTION int32_t lstm_scaled(int32_t x, int32_t multiplier, int32_t shift, int32_t added)
{
    return fl_add_wrapping(fl_requantize_double(x, multiplier, shift), added);
}
#endif

#ifndef LSTM_GATES
#define LSTM_GATES lstm_gates
/* Of `count` cells: one gate after the other, each with its scales in registers. */
S16_FUNCTION void lstm_gates(const int32_t *sums, const int32_t *scales, int16_t *gates, int32_t count, int32_t units)
{
#pragma GCC unroll 1
    for (int32_t k = 0; k < 4; k++) {
        const int32_t ahead = scales[0], ahead_shift = scales[4], back = scales[8], back_shift = scales[12];
        const int32_t *sum = sums;
#pragma GCC unroll 1
        for (int32_t i = 0; i < count; i++) {
            const int32_t first = LSTM_INT16(LSTM_SCALED(sum[0], ahead, ahead_shift, 0));
            gates[i] = (int16_t)LSTM_INT16(LSTM_SCALED(sum[4], back, back_shift, first));
            sum += 8;
        }
        scales++;
        sums++;
        gates += units;
    }
}
#endif

#ifndef LSTM_CELLS
#define LSTM_CELLS lstm_cells
/* The functions are computed one after another, so that each keeps its values in registers. */
S16_FUNCTION void lstm_sigmoids(int16_t *x, int32_t count)
{
#pragma GCC unroll 1
    for (const int16_t *const end = x + count; x != end; x++) {
        *x = (int16_t)s16_sigmoid(*x);
    }
}

S16_FUNCTION void lstm_tanhs(int16_t *to, const int16_t *from, int32_t count, int32_t integer_bits)
{
#pragma GCC unroll 1
    for (const int16_t *const end = from + count; from != end; from++) {
        *to++ = (int16_t)s16_tanh(*from, integer_bits);
    }
}

/* fl_divide_by_pot of a product of two int16. */
S16_FUNCTION int32_t lstm_divided(int32_t x, int32_t shift)
{
    return (x + (x >> 31) + (1 << (shift - 1))) >> shift;
}

S16_FUNCTION void lstm_cells(int16_t *gates, int16_t *cell, int8_t *y, const struct fl_lstm *p)
{
    const int32_t units = p->units, multiplier = p->multiplier, shift = p->shift, zero_point = p->zero_point;
    const int32_t clip = p->clip, entering = 15 + p->cell_bits;
    int16_t *const forget = gates + units, *const given = forget + units, *const out = given + units;
    for (int32_t third = 0; third < 4; third += 3) { /* input and forget gates, then output gates */
        lstm_sigmoids(gates + third * units, third == 0 ? 2 * units : units);
    }
    lstm_tanhs(given, given, units, 3);
    for (int32_t u = 0; u < units; u++) {
        const int32_t kept = lstm_divided(cell[u] * forget[u], 15);
        const int32_t sum = kept + lstm_divided(gates[u] * given[u], entering);
        cell[u] = (int16_t)fl_clamp(LSTM_INT16(sum), -clip, clip);
    }
    lstm_tanhs(given, cell, units, p->cell_bits);
    for (int32_t u = 0; u < units; u++) {
        const int32_t result = LSTM_RESULT(out[u] * given[u], multiplier, shift, zero_point);
        y[u] = (int8_t)fl_clamp(result, INT8_MIN, INT8_MAX);
    }
}
#endif

S16_FUNCTION void lstm_step(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias,
                            const int32_t *scales, int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    const struct fl_lstm p = *(const struct fl_lstm *)parameters; /* local copy: y may alias it */
    int8_t *const row = (int8_t *)(scratch + 8 * LSTM_BLOCK), *const before = row + lstm_bytes(p.depth);
    int16_t *const gates = (int16_t *)(before + lstm_bytes(p.units));
    const int32_t chunks = lstm_chunks(p.depth), chunks_before = lstm_chunks(p.units);
    lstm_row(row, x, p.depth);
    lstm_row(before, hidden, p.units);
    for (int32_t u = 0; u < p.units; u += LSTM_BLOCK) {
        const int32_t left = p.units - u, count = left < LSTM_BLOCK ? left : LSTM_BLOCK;
        int32_t *sum = scratch;
        for (int32_t i = 0; i < count; i++) {
            lstm_sums(row, input, chunks, bias, sum);
            lstm_sums(before, recurrent, chunks_before, bias + 4, sum + 4);
            input += 4 * LSTM_CHUNK * chunks;
            recurrent += 4 * LSTM_CHUNK * chunks_before;
            bias += 8;
            sum += 8;
        }
        LSTM_GATES(scratch, scales, gates + u, count, p.units);
    }
    LSTM_CELLS(gates, cell, y, &p);
    __builtin_memcpy(hidden, y, (size_t)p.units);
}
