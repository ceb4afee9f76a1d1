/* FFTs in int16, 15 fractional bits. Sums of a butterfly fit 32 bits. */
#define NAME(function) NAME16_(function)
#define NAME16_(function) fl_##function##_s16
#define SCALAR int16_t
#define SUM int32_t
#define PRODUCT int32_t
#define PLUS(a, b) ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#define ROUND(product) (((product) + (1 << 14)) >> 15)
#define SHARE(radix) (INT16_MAX / (radix))
#define SHARED(a, share) ROUND((a) * (share))
#define HALF(sum) ((sum) >> 1)
#define EXACT 0
#define DIVIDED(y, count)
#include "fft_image.h"
