/* RISC-V P, draft 0.9.11, for C: one function per instruction, through .insn, which GCC knows without the extension.
 *
 * Encodings: riscv-opcodes be98b702, unratified/{rv_zpn,rv64_zpn,rv_zbpbo}. Semantics: riscv-p-spec, P-ext-proposal,
 * 0.9.11. A `rvp_word` is one register: 8, 16 or 32-bit lanes, the first in the low bits. Names are those of the draft;
 * on RV32 the operations on 32-bit lanes, which only RV64 has, are the plain ones.
 */
#ifndef FIRMLINE_RVP_INTRINSICS_H
#define FIRMLINE_RVP_INTRINSICS_H

#include <stdint.h>

typedef uintptr_t rvp_word;
/* A word of a byte buffer: may alias anything, but must be aligned. */
typedef rvp_word __attribute__((may_alias)) rvp_memory;
typedef uint32_t __attribute__((may_alias)) rvp_lane_memory;

enum { RVP_WORD_BYTES = sizeof(rvp_word), RVP_LANES = RVP_WORD_BYTES / 4 };

#define RVP_INLINE static inline __attribute__((always_inline))

#define RVP_BINARY(name, opcode, funct3, funct7)                                                       \
    RVP_INLINE rvp_word rvp_##name(rvp_word a, rvp_word b)                                             \
    {                                                                                                  \
        rvp_word d;                                                                                    \
        __asm__(".insn r " #opcode ", " #funct3 ", " #funct7 ", %0, %1, %2" : "=r"(d) : "r"(a), "r"(b)); \
        return d;                                                                                      \
    }
#define RVP_ACCUMULATE(name, opcode, funct3, funct7)                                                   \
    RVP_INLINE rvp_word rvp_##name(rvp_word d, rvp_word a, rvp_word b)                                 \
    {                                                                                                  \
        __asm__(".insn r " #opcode ", " #funct3 ", " #funct7 ", %0, %1, %2" : "+r"(d) : "r"(a), "r"(b)); \
        return d;                                                                                      \
    }
/* The second source field holds an immediate, or selects the operation. */
#define RVP_UNARY(name, opcode, funct3, funct7, field)                                                 \
    RVP_INLINE rvp_word rvp_##name(rvp_word a)                                                         \
    {                                                                                                  \
        rvp_word d;                                                                                    \
        __asm__(".insn r " #opcode ", " #funct3 ", " #funct7 ", %0, %1, x" #field : "=r"(d) : "r"(a));  \
        return d;                                                                                      \
    }

RVP_ACCUMULATE(smaqa, 0x77, 0, 0x64)    /* 32-bit lanes: d += four products, signed x signed bytes */
RVP_ACCUMULATE(smaqa_su, 0x77, 0, 0x65) /* signed bytes of a x unsigned bytes of b */
RVP_BINARY(smmul, 0x77, 1, 0x20)        /* 32-bit lanes: (a * b) >> 32 */
RVP_BINARY(kwmmul_u, 0x77, 1, 0x39)     /* 32-bit lanes: (a * b + 2^30) >> 31, saturated */
RVP_BINARY(smmul_u, 0x77, 1, 0x28)      /* 32-bit lanes: (a * b + 2^31) >> 32 */
RVP_BINARY(add16, 0x77, 0, 0x20)
RVP_BINARY(sub16, 0x77, 0, 0x21)
RVP_BINARY(sll16, 0x77, 0, 0x2a)        /* 16-bit lanes: a << (b & 15) */
RVP_BINARY(srl16, 0x77, 0, 0x29)        /* 16-bit lanes: a >> (b & 15), zeros from above */
RVP_BINARY(scmplt16, 0x77, 0, 0x06)     /* 16-bit lanes: a < b ? -1 : 0, signed */
RVP_BINARY(khm16, 0x77, 0, 0x43)        /* 16-bit lanes: (a * b) >> 15, saturated */
RVP_BINARY(radd16, 0x77, 0, 0x00)       /* 16-bit lanes: (a + b) >> 1, exact */
RVP_BINARY(rsub16, 0x77, 0, 0x01)       /* 16-bit lanes: (a - b) >> 1, exact */
RVP_BINARY(smax16, 0x77, 0, 0x41)
RVP_BINARY(smin16, 0x77, 0, 0x40)
RVP_BINARY(smbb16, 0x77, 1, 0x04)       /* 32-bit lanes: low half of a * low half of b */
RVP_BINARY(smtt16, 0x77, 1, 0x14)       /* 32-bit lanes: upper half of a * upper half of b */
RVP_BINARY(smdrs, 0x77, 1, 0x34)        /* 32-bit lanes: product of the low halves - product of the upper halves */
RVP_BINARY(kmxda, 0x77, 1, 0x1d)        /* 32-bit lanes: low half of a * upper half of b + upper half of a * low half of b */
RVP_UNARY(srai16_u_1, 0x77, 0, 0x38, 17) /* 16-bit lanes: (a + 1) >> 1 */
RVP_UNARY(srai16_u_2, 0x77, 0, 0x38, 18) /* 16-bit lanes: (a + 2) >> 2 */
RVP_BINARY(smmwb_u, 0x77, 1, 0x2a)      /* 32-bit lanes: (a * low half of b + 2^15) >> 16 */
RVP_BINARY(smmwt_u, 0x77, 1, 0x3a)      /* the same with the upper half of b */
RVP_BINARY(smax8, 0x77, 0, 0x45)
RVP_BINARY(smin8, 0x77, 0, 0x44)
RVP_BINARY(umax8, 0x77, 0, 0x4d)
RVP_BINARY(umin8, 0x77, 0, 0x4c)
RVP_UNARY(kslli16_8, 0x77, 0, 0x3a, 24) /* 16-bit lanes: a << 8, saturated: the byte of int8(a) in the upper half */
RVP_UNARY(sclip32_14, 0x77, 0, 0x72, 14) /* 32-bit lanes: to [-2^14, 2^14) */
RVP_UNARY(sclip32_15, 0x77, 0, 0x72, 15) /* to [-2^15, 2^15) */
RVP_UNARY(clz32, 0x77, 0, 0x57, 25)      /* 32-bit lanes: leading zeros */
RVP_UNARY(sunpkd820, 0x77, 0, 0x56, 9)  /* per 32 bits: bytes 0 and 2, sign-extended to 16 bits */
RVP_UNARY(sunpkd831, 0x77, 0, 0x56, 11) /* bytes 1 and 3 */
RVP_UNARY(zunpkd820, 0x77, 0, 0x56, 13) /* the same, zero-extended */
RVP_UNARY(zunpkd831, 0x77, 0, 0x56, 15)
RVP_BINARY(pkbt16, 0x77, 1, 0x0f)       /* per 32 bits: low half of a above the upper half of b */
RVP_BINARY(pktb16, 0x77, 1, 0x1f)       /* per 32 bits: upper half of a above the low half of b */
RVP_BINARY(pack, 0x33, 4, 0x04)         /* low half of the register of b above that of a (RV64: pkbb32(b, a)) */
RVP_BINARY(packu, 0x33, 4, 0x24)        /* upper half of b above that of a */
#if __riscv_xlen == 64
RVP_BINARY(add32, 0x77, 2, 0x20)
RVP_BINARY(sub32, 0x77, 2, 0x21)
RVP_BINARY(sll32, 0x77, 2, 0x2a)        /* 32-bit lanes: both by b & 31 */
RVP_BINARY(sra32, 0x77, 2, 0x28)
RVP_UNARY(srai32_1, 0x77, 2, 0x38, 1)
RVP_UNARY(srai32_2, 0x77, 2, 0x38, 2)
RVP_UNARY(srai32_16, 0x77, 2, 0x38, 16)
RVP_UNARY(slli32_16, 0x77, 2, 0x3a, 16)
RVP_BINARY(kadd32, 0x77, 2, 0x08)
RVP_BINARY(ksub32, 0x77, 2, 0x09)
RVP_UNARY(sign32, 0x77, 2, 0x38, 31)    /* srai32 by 31: 0 or -1 */
RVP_UNARY(srai32_u_15, 0x77, 2, 0x40, 15) /* (a + 2^14) >> 15 */
RVP_UNARY(srli32_16, 0x77, 2, 0x39, 16) /* zeros from above */
RVP_ACCUMULATE(smar64, 0x77, 1, 0x42)   /* d += both products of signed 32-bit lanes */
RVP_ACCUMULATE(umar64, 0x77, 1, 0x52)   /* d += both products of unsigned 32-bit lanes */
RVP_BINARY(pkbb16, 0x77, 1, 0x07)       /* per 32 bits: low half of a above that of b */
RVP_BINARY(pktt16, 0x77, 1, 0x17)       /* per 32 bits: upper half of a above that of b */
#else
RVP_INLINE rvp_word rvp_add32(rvp_word a, rvp_word b) { return a + b; }
RVP_BINARY(kadd32, 0x77, 1, 0x00)       /* kaddw */
RVP_BINARY(ksub32, 0x77, 1, 0x01)       /* ksubw */
RVP_INLINE rvp_word rvp_sign32(rvp_word a) { return (rvp_word)((int32_t)a >> 31); }
RVP_UNARY(srai32_u_15, 0x77, 1, 0x6a, 15) /* srai.u */
RVP_INLINE rvp_word rvp_pkbb16(rvp_word a, rvp_word b) { return rvp_pack(b, a); }
RVP_INLINE rvp_word rvp_pktt16(rvp_word a, rvp_word b) { return rvp_packu(b, a); }
#endif

/* The low 32-bit lane in every lane. */
RVP_INLINE rvp_word rvp_pack_all(rvp_word a) { return RVP_LANES == 1 ? a : rvp_pack(a, a); }

/* mask ? a : b, bit by bit (cmix of Zbpbo). */
RVP_INLINE rvp_word rvp_select_bits(rvp_word mask, rvp_word a, rvp_word b)
{
    rvp_word d;
    __asm__(".insn r4 0x33, 1, 3, %0, %1, %2, %3" : "=r"(d) : "r"(a), "r"(mask), "r"(b));
    return d;
}

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

#endif
