/* Integer LSTM: four elements of a row (two words of int16) times the weights of four gates: 3 loads, 8 sxtb16 and 8 smlad. */
#include "lstm.h"

#include "four_rows.h"

#define LSTM_CHUNK 4
#define LSTM_WIDE 2
#define lstm_row dsp_row
#define lstm_sums dsp_four_rows
#define LSTM_SCALED scaled
#define LSTM_INT16 dsp_ssat_16
#define S16_TOP dsp_smmlar
#define S16_MOST dsp_ssat_16

/* As fl_requantize_double, for sums whose double still fits 32 bits after the left shift. */
DSP_INLINE int32_t scaled(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift & ~(shift >> 31), right = shift & shift >> 31;
    const int32_t high = dsp_smmlar(x * 2 * (1 << left), multiplier, 0);
    return (high + ((high & right) >> 31) + (int32_t)(1u << -right >> 1)) >> -right;
}

#include "lstm_image.h"

void arm_dsp_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                     int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
