/* FFTs in float32. The inverse divides its results by their number. Products are rounded before they are added, as
 * in the reference. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#ifdef __ARM_FEATURE_MVE
#pragma GCC optimize("no-tree-vectorize") /* vectors flush subnormal numbers (float_vectors.h) */
#endif
#endif
#define NAME(function) NAMEF_(function)
#define NAMEF_(function) fl_##function##_f32
#define SCALAR float
#define SUM float
#define PRODUCT float
#define PLUS(a, b) ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#define ROUND(product) (product)
#define SHARE(radix) 0
#define SHARED(a, share) (a)
#define HALF(sum) ((sum) * 0.5f)
#define EXACT 1
#define DIVIDED(y, count)                      \
    for (int32_t k = 0; k < (count); k++) \
        (y)[k] /= (float)(count);
#include "fft_image.h"
