/* RESIZE_BILINEAR by halving sums: a register of channels, half of it in each RADD16. */
#include "resize.h"

#include <stddef.h>

#include "rvp_intrinsics.h"

#define RH_GROUP RVP_WORD_BYTES
typedef rvp_word rh_word;

RVP_BINARY(radd16, 0x77, 0, 0x00) /* 16-bit lanes: (a + b) >> 1 */

RVP_INLINE rvp_word rh_halved(rvp_word a, rvp_word b)
{
    return rvp_radd16(a, b);
}

RVP_INLINE rvp_word rh_load(const int8_t *from)
{
    return rvp_load(from);
}

RVP_INLINE void rh_store(int8_t *to, rvp_word bytes)
{
    rvp_store(to, bytes);
}

RVP_INLINE rvp_word rh_gather(const int8_t *from, int32_t count)
{
    rvp_word bytes = 0;
    uintptr_t at = 0;
    if (((uintptr_t)from & 3) == 0) {
        for (; count >= 4; count -= 4, from += 4, at += 32) {
            bytes |= rvp_sll((uint32_t)rvp_load_lane(from), at);
        }
    }
    for (; count > 0; count--, from++, at += 8) {
        bytes |= rvp_sll((uint8_t)*from, at);
    }
    return bytes;
}

RVP_INLINE void rh_scatter(int8_t *to, rvp_word bytes, int32_t count)
{
    if (((uintptr_t)to & 3) == 0) {
        for (; count >= 4; count -= 4, to += 4) {
            rvp_store_lane(to, bytes);
            bytes = RVP_LANES == 1 ? 0 : rvp_srl(bytes, 32);
        }
    }
    for (; count > 0; count--, to++) {
        *to = (int8_t)bytes;
        bytes >>= 8;
    }
}

struct rh_lanes;
RVP_INLINE struct rh_lanes rh_spread(rvp_word bytes);
RVP_INLINE rvp_word rh_joined(struct rh_lanes lanes);

#include "resize_halves.h"

/* Bytes in the upper halves of lanes. */
RVP_INLINE rvp_word upper(void)
{
    return rvp_splat16(0xff00);
}

RVP_INLINE struct rh_lanes rh_spread(rvp_word bytes)
{
    const rvp_word half = rvp_splat16(128);
    return (struct rh_lanes){rvp_select_bits(upper(), bytes << 8, half), rvp_select_bits(upper(), bytes, half)};
}

/* Lowers lanes that are not above zero by one. */
RVP_INLINE rvp_word lowered(rvp_word lanes)
{
    return rvp_add16(lanes, rvp_scmplt16(lanes, rvp_splat16(1)));
}

RVP_INLINE rvp_word rh_joined(struct rh_lanes lanes)
{
    return rvp_select_bits(upper(), lowered(lanes.second), lowered(lanes.first) >> 8);
}

void rvp_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                            const void *parameters)
{
    rh_image(x, rows, columns, y, scratch, parameters);
}
