/* Features of log-mel spectra: 64-bit sums of products. */
#include "mel_features.h"

#include "elements.h"

typedef int16_t mel_weight;

INLINE int64_t mel_sum(int64_t sum, const int32_t *x, const mel_weight *w, int32_t depth)
{
    const int32_t *const end = x + depth;
    for (const int32_t *const last = x + (depth & -4); x != last; x += 4, w += 4) {
        sum += (int64_t)x[0] * w[0];
        sum += (int64_t)x[1] * w[1];
        sum += (int64_t)x[2] * w[2];
        sum += (int64_t)x[3] * w[3];
    }
    while (x != end) {
        sum += (int64_t)*x++ * *w++;
    }
    return sum;
}

#include "mel_features_image.h"

MEL_FEATURES(fl_mel_features_8, int8_t)
MEL_FEATURES(fl_mel_features_16, int16_t)
