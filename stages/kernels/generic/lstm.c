/* Integer LSTM, a cell after the other. */
#include "lstm.h"

#include <string.h>

#include "requantize.h"
#include "sigmoid16.h"

static int32_t clamp16(int32_t x)
{
    return fl_clamp(x, INT16_MIN, INT16_MAX);
}

static int32_t scaled_sum(int32_t bias, const int8_t *x, const int8_t *w, int32_t count, const int32_t *scale)
{
    uint32_t sum = (uint32_t)bias;
    for (int32_t k = 0; k < count; k++) {
        sum += (uint32_t)(x[k] * w[k]);
    }
    return fl_requantize_double((int32_t)sum, scale[0], scale[1]);
}

void fl_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias,
                const int32_t *scales, int8_t *hidden, int16_t *cell, int8_t *y, const void *parameters)
{
    const struct fl_lstm *p = parameters;
    for (int32_t u = 0; u < p->units; u++) {
        int32_t entering = 0, kept = 0, given = 0;
        for (int32_t k = 0; k < 4; k++) {
            const int32_t ahead = scaled_sum(bias[0], x, input, p->depth, scales + 4 * k);
            const int32_t back = scaled_sum(bias[1], hidden, recurrent, p->units, scales + 4 * k + 2);
            const int32_t gate = clamp16(fl_add_wrapping(clamp16(ahead), back));
            switch (k) {
            case 0:
                entering = fl_sigmoid16(gate);
                break;
            case 1:
                kept = cell[u] * fl_sigmoid16(gate);
                break;
            case 2:
                entering *= fl_tanh16(gate, 3);
                break;
            default:
                given = fl_sigmoid16(gate);
            }
            bias += 2;
            input += p->depth;
            recurrent += p->units;
        }
        const int32_t sum = fl_divide_by_pot(kept, 15) + fl_divide_by_pot(entering, 15 + p->cell_bits);
        cell[u] = (int16_t)fl_clamp(clamp16(sum), -p->clip, p->clip);
        const int32_t scaled = fl_requantize_double(given * fl_tanh16(cell[u], p->cell_bits), p->multiplier, p->shift);
        y[u] = (int8_t)fl_clamp(fl_add_wrapping(scaled, p->zero_point), INT8_MIN, INT8_MAX);
    }
    memcpy(hidden, y, (size_t)p->units);
}
