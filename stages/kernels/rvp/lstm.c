/* Integer LSTM: a register of a row times one of each of four gates: 5 loads and 4 smaqa. */
#include "lstm.h"

#include "four_rows.h"

#define LSTM_CHUNK RVP_WORD_BYTES
#define LSTM_WIDE 1
#define lstm_row rvp_row
#define lstm_sums rvp_four_rows
#define LSTM_INT16 to_int16
#define S16_MOST to_int16
#if __riscv_xlen == 32
#define S16_TOP(a, b, sum) ((sum) + (int32_t)rvp_smmul_u((rvp_word)(a), (rvp_word)(b)))
#endif

RVP_INLINE int32_t to_int16(int32_t x)
{
    return (int32_t)rvp_sclip32_15((rvp_word)x);
}

#include "lstm_image.h"

void rvp_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                 int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
