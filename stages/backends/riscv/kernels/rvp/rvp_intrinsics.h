/* RISC-V P for C. A `rvp_word` is one register: 8, 16 or 32-bit lanes, the first in the low bits.
 *
 * rvp_operations.h is generated from the declaration of the core's draft: one function per operation. Operations have
 * the names of draft 0.9.11, whatever instruction computes them; those on 32-bit lanes are plain ones on RV32.
 */
#pragma once

#include <stdint.h>

typedef uintptr_t rvp_word;
/* A word of a byte buffer: may alias anything, but must be aligned. */
typedef rvp_word __attribute__((may_alias)) rvp_memory;
typedef uint32_t __attribute__((may_alias)) rvp_lane_memory;

enum { RVP_WORD_BYTES = sizeof(rvp_word), RVP_LANES = RVP_WORD_BYTES / 4 };

#define RVP_INLINE static inline __attribute__((always_inline))

#include "rvp_operations.h"

/* The low 32-bit lane in every lane. */
RVP_INLINE rvp_word rvp_pack_all(rvp_word a) { return RVP_LANES == 1 ? a : rvp_pack(a, a); }

RVP_INLINE rvp_word rvp_splat32(int32_t value)
{
    return RVP_LANES == 1 ? (rvp_word)(uint32_t)value : (rvp_word)((uint64_t)(uint32_t)value * 0x100000001u);
}

RVP_INLINE rvp_word rvp_splat16(int value)
{
    return (rvp_word)(uint16_t)value * (rvp_word)0x0001000100010001u;
}

RVP_INLINE rvp_word rvp_splat8(int value)
{
    return (rvp_word)(uint8_t)value * (rvp_word)0x0101010101010101u;
}

/* Shifts by the low bits of the amount, as the instructions do (in C a larger amount is undefined). */
RVP_INLINE rvp_word rvp_srl(rvp_word a, uintptr_t amount)
{
    rvp_word d;
    __asm__("srl %0, %1, %2" : "=r"(d) : "r"(a), "r"(amount));
    return d;
}

RVP_INLINE rvp_word rvp_sll(rvp_word a, uintptr_t amount)
{
    rvp_word d;
    __asm__("sll %0, %1, %2" : "=r"(d) : "r"(a), "r"(amount));
    return d;
}

RVP_INLINE rvp_word rvp_load(const void *p)
{
    return *(const rvp_memory *)p;
}

/* Four bytes in the low lane, of any place that is a multiple of four. */
RVP_INLINE rvp_word rvp_load_lane(const void *p)
{
    return *(const rvp_lane_memory *)p;
}

RVP_INLINE void rvp_store_lane(void *p, rvp_word value)
{
    *(rvp_lane_memory *)p = (uint32_t)value;
}

RVP_INLINE void rvp_store(void *p, rvp_word value)
{
    *(rvp_memory *)p = value;
}
