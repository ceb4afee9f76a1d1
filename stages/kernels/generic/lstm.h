/* A step of an LSTM for one row: what goes in, what was given before, and what the cells remember. */
#ifndef FIRMLINE_GENERIC_LSTM_H
#define FIRMLINE_GENERIC_LSTM_H

#include <stdint.h>

/* Gates of a cell lie together, in the order input, forget, cell, output:
 *
 *      input      [units][4][depth]    recurrent  [units][4][units]    bias  [units][4][2], of both, zero points and all
 *
 *      gate = clamp(clamp(M(bias[0] + input . x)) + M(bias[1] + recurrent . hidden))
 *      cell = cell * sigmoid(forget) + sigmoid(input) * tanh(cell gate)
 *      y    = sigmoid(output) * tanh(cell), which is the next hidden
 *
 * scales  [4][4]: multiplier and shift of the products of x, multiplier and shift of those of hidden, for each gate
 * clip    bounds the cells, 32768: not at all
 */
struct fl_lstm {
    int32_t units, depth, cell_bits, clip, multiplier, shift, zero_point;
};
void fl_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias,
                const int32_t *scales, int8_t *hidden, int16_t *cell, int8_t *y, const void *parameters);

#endif
