/* Integer LSTM: four elements of a row (two words of int16) times the weights of four gates: 3 loads, 8 sxtb16 and 8 smlad. */
#include "lstm.h"

#include "four_rows.h"

#define LSTM_CHUNK 4
#define LSTM_WIDE 2
#define lstm_row dsp_row
#define lstm_sums dsp_four_rows
#define LSTM_SCALED scaled
#define LSTM_RESULT scaled_result
#define LSTM_INT16 dsp_ssat_16
#define S16_TOP top
#define S16_MOST dsp_ssat_16

/* dsp_smmlar; without a register for a constant zero. */
DSP_INLINE int32_t top(int32_t x, int32_t y, int32_t sum)
{
    int32_t product;
    if (!__builtin_constant_p(sum) || sum != 0) {
        return dsp_smmlar(x, y, sum);
    }
    __asm__("smmulr %0, %1, %2" : "=r"(product) : "r"(x), "r"(y));
    return product;
}

/* added + fl_requantize_double, for sums whose quadruple still fits 32 bits after the left shift. The last product rounds halves up;
 * before it a negative number gets a little smaller, so that its halves go down. */
DSP_INLINE int32_t scaled(int32_t x, int32_t multiplier, int32_t shift, int32_t added)
{
    const int32_t left = shift & ~(shift >> 31), right = -(shift & shift >> 31);
    const int32_t high = top((int32_t)((uint32_t)x << (left + 1)), multiplier, 0);
    return top(high * 4 + (high >> 31), (1 << 30) >> right, added);
}

/* The same for x below 2^30 and a shift of at most -2. */
DSP_INLINE int32_t scaled_result(int32_t x, int32_t multiplier, int32_t shift, int32_t added)
{
    const int32_t high = top(x * 2, multiplier, 0);
    return dsp_smmlar(high + (high >> 31), (int32_t)(1u << (32 + shift)), added);
}

#include "lstm_image.h"

void arm_dsp_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                     int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
