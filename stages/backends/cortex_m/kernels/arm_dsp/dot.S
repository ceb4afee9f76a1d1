/* Dot products of one row with all units of a fully connected layer, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_dot_<ab|bytes>_<double|single>(const int8_t *x, const int32_t *blocks, void *out, int32_t units,
 *                                               const int32_t *fields, int32_t offset);
 *
 * A block is three pairs of units A, B in the form of gemm.S; the last block may have one or two pairs. Each word of weights is
 * loaded once.
 *
 *   x        fields.fours * 4 activations
 *   blocks   [units / 6, rounded up] of
 *              [pairs][2]           words: bias of A, bias of B (ab: 256 * B + A)
 *              [fours][pairs][2]    weights of each pair: elements 0 and 2, elements 1 and 3 of the four
 *              [pairs][4]           multipliers of A and B, rounders of A and B (rounding.py)
 *   fields   fours, zero_point, floor, low (as in gemm.S)
 *   offset   added to every sum (bytes only): the term of the weights' zero point
 *   double   rounds twice, single once: rounding.py
 *
 * Register blocking of eight elements, ab, three pairs: 45 instructions for 48 multiply-accumulates.
 *
 *                            w & 0xff   w        <- weights, four words at a time for two pairs: 3 ldm, 12 sxtb16 (each word is
 *   x (0,2), (1,3) | A0        S0                   multiplied before it is widened)
 *   then           | A1        S1                x: 2 loads, 4 sxtb16, for all pairs
 *   x (4,6), (5,7) | A2        S2                6 sums + 2 activations + 4 weights + x, blocks = r0-r12 and lr
 */
#include "dsp_asm.h"

#define blocks r12
#define x lr

#define X 0                            /* the frame */
#define X_END 4
#define START 8                        /* where a block starts: at its odd group of four, or at ENTRY */
#define ENTRY 12                       /* where the unrolled loop is entered */
#define ZERO_POINT 16
#define FOURS 20
#define FLOOR 24
#define LOW 28
#define OUT 32
#define UNITS 36
#define FRAME 44                       /* with nine saved registers: a multiple of 8 */
#define FIELDS (FRAME + SAVED)         /* arguments on the stack */
#define OFFSET (FRAME + SAVED + 4)

/* `step` for each pair in use: its sums for A and B. */
.macro for_pairs step
    \step r0, r1
    .if pairs > 1
    \step r2, r3
    .endif
    .if pairs > 2
    \step r4, r5
    .endif
.endm

.macro add_offset a, b
    add \a, \a, r8
    add \b, \b, r8
.endm

/* All instructions of the loops have four bytes, because their entry is computed. */
.macro load_activations
    ldr r7, [x], #4
    sxtb16 r6, r7
    sxtb16 r7, r7, ror #8
.endm

.macro multiply_words a, b, w02, w13
    smlad \b, r6, \w02, \b
    smlad \b, r7, \w13, \b
    sxtb16 \w02, \w02
    sxtb16 \w13, \w13
    smlad \a, r6, \w02, \a
    smlad \a, r7, \w13, \a
.endm

/* Pair by pair: for `bytes`, and for a single four of `ab`. */
.macro multiply_ab a, b
    ldrd r8, r9, [blocks], #8
    multiply_words \a, \b, r8, r9
.endm

.macro multiply_bytes a, b
    ldrd r8, r9, [blocks], #8
    sxtb16 r10, r8
    sxtb16 r11, r9
    sxtb16 r8, r8, ror #8
    sxtb16 r9, r9, ror #8
    smlad \a, r6, r10, \a
    smlad \a, r7, r11, \a
    smlad \b, r6, r8, \b
    smlad \b, r7, r9, \b
.endm

/* `count` pairs of two fours, one pair after the other. Weights are loaded for two pairs at once. */
.macro next_ab a, b
    .if count == 0 || count == pairs
    load_activations
    .endif
    .if count & 1
    multiply_words \a, \b, r10, r11
    .else
    ldm blocks!, {r8-r11}
    multiply_words \a, \b, r8, r9
    .endif
    .set count, count + 1
.endm

.macro one_four form
    load_activations
    for_pairs multiply_\form
.endm

.macro two_fours form
    .ifc \form, ab
    .set count, 0
    for_pairs next_ab
    for_pairs next_ab
    .else
    one_four \form
    one_four \form
    .endif
.endm

.macro requantize a, b
    ldm blocks!, {r8-r11}
    .if single
    smmla \a, \a, r8, \a
    smmla \b, \b, r9, \b
    .else
    high_multiply \a, \b, r8, r9
    .endif
    round_sums \a, \b, r10, r11, x
.endm

/* START and ENTRY of the loop at `loop`. An iteration processes `turn` times two fours. */
.macro find_entry loop, end, odd, turn
    ldr r4, [sp, #FOURS]
    lsrs r5, r4, #1
    rsb r5, r5, #0                     /* how many of these the first iteration skips: all for a single four */
    and r5, r5, #\turn - 1
    it eq
    moveq r5, #\turn
    entry_point r5, r5, \turn, \loop, \end, r6, r7
    str r5, [sp, #ENTRY]
    tst r4, #1
    itt ne
    adrne r5, \odd
    orrne r5, r5, #1
    str r5, [sp, #START]
.endm

/* The results of a block of `count` pairs: bytes in r0, and in r4 for the third pair. OUT and UNITS are in r10 and r11. */
.macro block form, count, turn, part
    .set pairs, \count
    find_entry .Lloop_\@, .Lloop_end_\@, .Lodd_\@, \turn
.Lblock_\@:
    .if pairs == 3
    ldm blocks!, {r0-r5}
    .elseif pairs == 2
    ldm blocks!, {r0-r3}
    .else
    ldm blocks!, {r0-r1}
    .endif
    .ifc \form, bytes
    ldr r8, [sp, #OFFSET]
    for_pairs add_offset
    .endif
    ldr x, [sp, #X]
    ldr pc, [sp, #START]
    .balign 4
.Lodd_\@:
    one_four \form
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    .rept \turn
    two_fours \form
    .endr
.Lloop_end_\@:
    ldr r8, [sp, #X_END]
    cmp x, r8
    bne.w .Lloop_\@

    .ifc \form, ab
    for_pairs split_sums
    .endif
    ldr x, [sp, #ZERO_POINT]
    for_pairs requantize
    ldrd r8, r9, [sp, #FLOOR]
    ldrd r10, r11, [sp, #OUT]          /* and UNITS */
    .if pairs == 1
    narrow_two r8, r9, r0, r1
    .else
    narrow 4, r8, r9, r0, r1, r2, r3
    .endif
    .if pairs == 3
    narrow_two r8, r9, r4, r5
    subs r11, r11, #6
    blo.w \part
    str r0, [r10], #4
    strh r4, [r10], #2
    strd r10, r11, [sp, #OUT]
    cmp r11, #5
    bhs.w .Lblock_\@
    .endif
.endm

.macro dot name, form, rounds_once
    .set single, \rounds_once
    enter \name, FRAME
    str r0, [sp, #X]
    strd r2, r3, [sp, #OUT]
    mov blocks, r1
    ldr r4, [sp, #FIELDS]
    ldm r4, {r5-r8}
    strd r6, r5, [sp, #ZERO_POINT]     /* and FOURS */
    strd r7, r8, [sp, #FLOOR]
    add r4, r0, r5, lsl #2
    str r4, [sp, #X_END]
    cmp r3, #5
    blo.w .Lfew_\@
    block \form, 3, 8, .Lpart_\@
.Lfew_\@:                                /* fewer than five units are left */
    ldr r11, [sp, #UNITS]
    cmp r11, #0
    beq.w .Lend_\@
    cmp r11, #3
    blo.w .Ltwo_\@
    block \form, 2, 4
    b .Lbyte_\@
.Ltwo_\@:
    block \form, 1, 4
    b .Lbyte_\@
.Lpart_\@:                               /* five */
    add r11, r11, #6
.Lbyte_\@:
    strb r0, [r10], #1
    lsr r0, r0, #8
    orr r0, r0, r4, lsl #24
    lsr r4, r4, #8
    subs r11, r11, #1
    bne .Lbyte_\@
.Lend_\@:
    leave FRAME
    end_function \name
.endm

dot arm_dsp_dot_ab_double, ab, 0
dot arm_dsp_dot_ab_single, ab, 1
dot arm_dsp_dot_bytes_double, bytes, 0
dot arm_dsp_dot_bytes_single, bytes, 1
