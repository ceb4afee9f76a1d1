/* RESIZE_BILINEAR by halving sums: a word has four channels; SHADD16 computes two of them. */
#include "resize.h"

#include <stddef.h>

#include "dsp.h"

#define RH_GROUP 4
#define RH_APART 0
#define RH_FOURS 0
typedef uint32_t rh_word;

#define UPPER 0xff00ff00u
#define HALVES 0x00800080u
#define ONES 0x00010001u

DSP_INLINE uint32_t rh_halved(uint32_t a, uint32_t b)
{
    uint32_t half;
    __asm__("shadd16 %0, %1, %2" : "=r"(half) : "r"(a), "r"(b));
    return half;
}

DSP_INLINE uint32_t rh_load(const int8_t *from)
{
    return dsp_load(from);
}

DSP_INLINE void rh_store(int8_t *to, uint32_t bytes)
{
    dsp_store(to, bytes);
}

DSP_INLINE uint32_t rh_gather(const int8_t *from, int32_t count)
{
    if (count == RH_GROUP) {
        return dsp_load(from);
    }
    uint32_t bytes = (uint8_t)from[0];
    if (count > 1) {
        bytes |= (uint32_t)(uint8_t)from[1] << 8;
    }
    if (count > 2) {
        bytes |= (uint32_t)(uint8_t)from[2] << 16;
    }
    return bytes;
}

DSP_INLINE void rh_scatter(int8_t *to, uint32_t bytes, int32_t count)
{
    if (count == RH_GROUP) {
        dsp_store(to, bytes);
        return;
    }
    to[0] = (int8_t)bytes;
    if (count > 1) {
        to[1] = (int8_t)(bytes >> 8);
    }
    if (count > 2) {
        to[2] = (int8_t)(bytes >> 16);
    }
}

/* Subtracts one from the halves that are not above zero. SSUB16 sets the flags by which SEL selects them. */
DSP_INLINE uint32_t lowered(uint32_t halves)
{
    uint32_t less;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %1, %0" : "=&r"(less) : "r"(halves), "r"(ONES));
    return less;
}

struct rh_lanes;
DSP_INLINE struct rh_lanes rh_spread(uint32_t bytes);
DSP_INLINE uint32_t rh_joined(struct rh_lanes lanes);

#include "resize_halves.h"

DSP_INLINE struct rh_lanes rh_spread(uint32_t bytes)
{
    return (struct rh_lanes){(bytes << 8 & UPPER) | HALVES, (bytes & UPPER) | HALVES};
}

DSP_INLINE uint32_t rh_joined(struct rh_lanes lanes)
{
    return (lowered(lanes.first) >> 8 & ~UPPER) | (lowered(lanes.second) & UPPER);
}

void arm_dsp_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                                const void *parameters)
{
    rh_image(x, rows, columns, y, scratch, parameters);
}
