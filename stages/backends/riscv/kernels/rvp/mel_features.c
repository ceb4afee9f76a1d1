/* Features of log-mel spectra; on RV64 two products at a time, by SMAR64.
 *
 * Four weights lie in a register as 0 2 1 3, so that shifts of lanes make two pairs. Rows are padded to a multiple of four.
 */
#include "log_mel.h"
#include "rvp_intrinsics.h"

typedef int16_t mel_weight;

#if __riscv_xlen == 32
RVP_INLINE int64_t mel_sum(int64_t sum, const int32_t *x, const mel_weight *w, int32_t depth)
{
    for (const int32_t *const last = x + (depth & -4); x != last; x += 4, w += 4) {
        sum += (int64_t)x[0] * w[0];
        sum += (int64_t)x[1] * w[2];
        sum += (int64_t)x[2] * w[1];
        sum += (int64_t)x[3] * w[3];
    }
    return depth & 2 ? sum + (int64_t)x[0] * w[0] + (int64_t)x[1] * w[2] : sum;
}
#else
RVP_INLINE int64_t mel_sum(int64_t sum, const int32_t *x, const mel_weight *w, int32_t depth)
{
    rvp_word total = (rvp_word)sum;
    for (const int32_t *const last = x + (depth & -4); x != last; x += 4, w += 4) {
        const rvp_word four = rvp_load(w);
        total = rvp_smar64(total, rvp_load(x), rvp_srai32_16(rvp_slli32_16(four)));
        total = rvp_smar64(total, rvp_load(x + 2), rvp_srai32_16(four));
    }
    if (depth & 2)
        total = rvp_smar64(total, rvp_load(x), rvp_srai32_16(rvp_slli32_16(rvp_load(w))));
    return (int64_t)total;
}
#endif

#define MEL_ROW(depth) (((depth) + 3) & -4)
#include "mel_features_image.h"

MEL_FEATURES(rvp_mel_features_8, int8_t)
MEL_FEATURES(rvp_mel_features_16, int16_t)
