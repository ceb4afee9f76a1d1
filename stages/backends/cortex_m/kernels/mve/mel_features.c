/* Features of log-mel spectra: VMLALDAVA, four products at a time. */
#include "bytes.h"
#include "log_mel.h"

typedef int16_t mel_weight;

MVE_INLINE int64_t mel_sum(int64_t sum, const int32_t *x, const mel_weight *w, int32_t depth)
{
    register uint32_t low __asm__("r0") = (uint32_t)sum; /* an even and an odd register */
    register uint32_t high __asm__("r1") = (uint32_t)(sum >> 32);
    int32x4_t four, factors;
    __asm__ volatile("wlstp.32 lr, %[depth], 2f\n"
                     "1: vldrw.u32 %q[four], [%[x]], #16\n"
                     "vldrh.s32 %q[factors], [%[w]], #8\n"
                     "vmlaldava.s32 %[low], %[high], %q[four], %q[factors]\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [low] "+r"(low), [high] "+r"(high), [x] "+r"(x), [w] "+l"(w), [four] "=&w"(four), [factors] "=&w"(factors)
                     : [depth] "r"(depth)
                     : "lr", "memory");
    return (int64_t)((uint64_t)high << 32 | low);
}

#include "mel_features_image.h"

MEL_FEATURES(mve_mel_features_8, int8_t)
MEL_FEATURES(mve_mel_features_16, int16_t)
