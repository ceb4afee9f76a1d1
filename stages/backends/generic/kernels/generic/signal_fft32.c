/* FFTs in int32, 31 fractional bits. Sums wrap. */
#define NAME(function) NAME32_(function)
#define NAME32_(function) fl_##function##_s32
#define SCALAR int32_t
#define SUM int32_t
#define PRODUCT int64_t
#define PLUS(a, b) ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define MINUS(a, b) ((int32_t)((uint32_t)(a) - (uint32_t)(b)))
#define ROUND(product) ((int32_t)(((product) + (1 << 30)) >> 31))
#define SHARE(radix) (INT32_MAX / (radix))
#define SHARED(a, share) ROUND((a) * (share))
#define HALF(sum) ((sum) >> 1)
#define EXACT 0
#define DIVIDED(y, count)
#include "fft_image.h"
