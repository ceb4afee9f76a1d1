/* Integer LSTM: an element of a row times the weights of four gates. */
#include "lstm.h"

#include <string.h>

#define LSTM_CHUNK 1
#define LSTM_WIDE 1

static inline void lstm_row(int8_t *to, const int8_t *from, int32_t count)
{
    memcpy(to, from, (size_t)count);
}

static inline void lstm_sums(const int8_t *row, const int8_t *w, int32_t count, const int32_t *bias, int32_t *sums)
{
    uint32_t a = (uint32_t)bias[0], b = (uint32_t)bias[1], c = (uint32_t)bias[2], d = (uint32_t)bias[3];
    for (const int8_t *const end = row + count; row != end; row++, w += 4) {
        const int32_t x = *row;
        a += (uint32_t)(x * w[0]);
        b += (uint32_t)(x * w[1]);
        c += (uint32_t)(x * w[2]);
        d += (uint32_t)(x * w[3]);
    }
    sums[0] = (int32_t)a;
    sums[1] = (int32_t)b;
    sums[2] = (int32_t)c;
    sums[3] = (int32_t)d;
}

#include "lstm_image.h"

void fl_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
