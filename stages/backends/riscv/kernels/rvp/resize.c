/* RESIZE_BILINEAR by halving sums: a register of channels at a time; RADD16 computes half of them. */
#include "resize.h"

#include <stddef.h>

#include "rvp_intrinsics.h"

#define RH_GROUP RVP_WORD_BYTES
#define RH_APART 1
#define RH_FOURS (__riscv_xlen == 64)
typedef rvp_word rh_word;

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

/* Bytes from two registers that each contain some of them, so no read leaves the memory of the image. Bytes after `count` are arbitrary.
 * Shifting by one and then by the rest gives 0 if the bytes begin at a register.
 */
RVP_INLINE rvp_word rh_gather(const int8_t *from, int32_t count)
{
    const uintptr_t address = (uintptr_t)from, last = address + (uintptr_t)count - 1, begin = -(uintptr_t)RVP_WORD_BYTES;
    const rvp_word low = rvp_load((const void *)(address & begin)), high = rvp_load((const void *)(last & begin));
    return rvp_srl(low, address * 8) | rvp_sll(high << 1, ~(address * 8));
}

RVP_INLINE void rh_scatter(int8_t *to, rvp_word bytes, int32_t count)
{
    if (((uintptr_t)to & 3) == 0) {
        for (; count >= 4; count -= 4, to += 4) {
            rvp_store_lane(to, bytes);
            bytes = RVP_LANES == 1 ? 0 : rvp_srl(bytes, 32);
        }
    }
    for (; count > 3; count--, to++) {
        *to = (int8_t)bytes;
        bytes >>= 8;
    }
    if (count > 0) { /* up to three without a loop */
        to[0] = (int8_t)bytes;
    }
    if (count > 1) {
        to[1] = (int8_t)(bytes >> 8);
    }
    if (count > 2) {
        to[2] = (int8_t)(bytes >> 16);
    }
}

#if RH_FOURS
/* Of one unit of four bytes, or of two. */
RVP_INLINE rvp_word rh_gather_fours(const int8_t *from, int32_t count)
{
    const rvp_word low = rvp_load_lane(from);
    return count == RH_GROUP ? rvp_pack(low, rvp_load_lane(from + 4)) : low;
}

RVP_INLINE void rh_scatter_fours(int8_t *to, rvp_word bytes, int32_t count)
{
    rvp_store_lane(to, bytes);
    if (count == RH_GROUP) {
        rvp_store_lane(to + 4, rvp_srl(bytes, 32));
    }
}
#endif

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
