/* SVDF: four features at a time, two elements of their memories at a time. */
#include "svdf.h"

#include "four_rows.h"

#define SVDF_CHUNK 4
#define SVDF_ROW dsp_row
#define SVDF_SUMS dsp_four_rows

DSP_INLINE int32_t svdf_remember(int16_t *state, const int16_t *time, int32_t memory, int32_t newest, int32_t sum)
{
    int16_t *const last = state + memory - 1;
    for (int32_t left = (memory - 1) >> 1; left > 0; left--, state += 2, time += 2) {
        const uint32_t moved = dsp_load(state + 1);
        dsp_store(state, moved);
        sum = dsp_smlad(moved, dsp_load(time), sum);
    }
    if (state != last) { /* the last element of an even number: a word with the newest element */
        const uint32_t moved = dsp_low_halves((uint32_t)state[1], (uint32_t)newest);
        dsp_store(state, moved);
        return dsp_smlad(moved, dsp_load(time), sum);
    }
    *last = (int16_t)newest;
    return (int32_t)((uint32_t)sum + (uint32_t)(newest * *time));
}

#include "svdf_image.h"

void arm_dsp_svdf_s8(const int8_t *x, const int8_t *feature, const int32_t *feature_bias, const int16_t *time, const int32_t *bias,
                int16_t *state, int8_t *y, int32_t *scratch, const void *parameters)
{
    svdf_step(x, feature, feature_bias, time, bias, state, y, scratch, parameters);
}
