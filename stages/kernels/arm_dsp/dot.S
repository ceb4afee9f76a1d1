/* Dot products of one row with all units of a fully connected layer, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_dot_<ab|bytes>_<double|single>(const int8_t *x, const int32_t *blocks, void *out, int32_t units,
 *                                               const int32_t *fields, int32_t offset);
 *
 * A block is eight units, four pairs A, B in the form of gemm.S. Weights are streamed: each word is loaded once.
 *
 *   x        fields.fours * 4 activations
 *   blocks   [units / 8, rounded up] of
 *              [4][2]           words: bias of A, bias of B (ab: 256 * B + A)
 *              [fours][4][2]    weights of each pair: elements 0 and 2, elements 1 and 3 of the four
 *              [4][4]           multipliers of A and B, rounders of A and B (rounding.py)
 *   fields   fours, zero_point, floor, low (as in gemm.S)
 *   offset   added to every sum (bytes only): what the weights' zero point adds
 *   double   rounds twice, single once: rounding.py
 *
 * Register blocking of four elements, ab: 31 instructions for 32 multiply-accumulates.
 *
 *                   w & 0xff   w        <- weights, four times: 1 ldrd, 2 sxtb16 (after the words themselves were factors)
 *   x (0,2), (1,3) | A0        S0
 *                  | A1        S1       x: 1 load, 2 sxtb16, for all of them
 *                  | A2        S2
 *                  | A3        S3       8 sums + 2 activations + 2 weights + x, blocks = r0-r12 and lr
 */
    .syntax unified
    .thumb

#define UNROLL 8

#define blocks r12
#define x lr

#define X 0                            /* the frame */
#define ENTRY 4                        /* where the unrolled loop is entered */
#define X_END 8
#define ZERO_POINT 12
#define FLOOR 16
#define LOW 20
#define OUT 24
#define UNITS 28
#define FRAME 36                       /* and nine registers: a multiple of 8 */
#define FIELDS (FRAME + 36)            /* arguments on the stack */
#define OFFSET (FRAME + 40)

.macro for_pairs step
    \step r0, r1
    \step r2, r3
    \step r4, r5
    \step r6, r7
.endm

.macro add_offset a, b
    add \a, \a, r8
    add \b, \b, r8
.endm

/* All instructions are of four bytes: the entry is computed. */
.macro multiply_ab a, b
    ldrd r10, r11, [blocks], #8
    smlad \b, r8, r10, \b
    smlad \b, r9, r11, \b
    sxtb16 r10, r10
    sxtb16 r11, r11
    smlad \a, r8, r10, \a
    smlad \a, r9, r11, \a
.endm

.macro multiply_bytes a, b
    .irp activations, r8, r9
    ldr r10, [blocks], #4
    sxtb16 r11, r10
    sxtb16 r10, r10, ror #8
    smlad \a, \activations, r11, \a
    smlad \b, \activations, r10, \b
    .endr
.endm

.macro split_sums a, b
    sub \b, \b, \a
    asr \b, \b, #8
.endm

.macro requantize a, b
    ldm blocks!, {r8-r11}
    .if single
    smmla \a, \a, r8, \a
    smmla \b, \b, r9, \b
    .else
    smmlar \a, \a, r8, \a
    smmlar \b, \b, r9, \b
    .endif
    smmlar \a, \a, r10, x
    smmlar \b, \b, r11, x
.endm

/* Four units into the bytes of c0: r8 is floor, r9 low, in every byte. */
.macro narrow c0, c1, c2, c3
    pkhbt \c0, \c0, \c2, lsl #16
    pkhbt \c1, \c1, \c3, lsl #16
    usat16 \c0, #8, \c0
    usat16 \c1, #8, \c1
    orr \c0, \c0, \c1, lsl #8
    uqsub8 \c0, \c0, r8
    uadd8 \c0, \c0, r9
.endm

.macro dot name, form, rounds_once
    .set single, \rounds_once
    .section .text.\name, "ax", %progbits
    .globl \name
    .type \name, %function
    .thumb_func
    .balign 4
\name:
    push {r4-r11, lr}
    sub sp, sp, #FRAME
    str r0, [sp, #X]
    strd r2, r3, [sp, #OUT]
    mov blocks, r1
    ldr r4, [sp, #FIELDS]
    ldm r4, {r5-r8}
    str r6, [sp, #ZERO_POINT]
    strd r7, r8, [sp, #FLOOR]
    add r4, r0, r5, lsl #2
    str r4, [sp, #X_END]
    rsb r5, r5, #0                     /* fours that the first turn skips */
    and r5, r5, #UNROLL - 1
    mov r6, #(.Lloop_end_\@ - .Lloop_\@) / UNROLL
    adr r7, .Lloop_\@
    mla r5, r5, r6, r7
    orr r5, r5, #1
    str r5, [sp, #ENTRY]

.Lblock_\@:
    ldm blocks!, {r0-r7}
    .ifc \form, bytes
    ldr r8, [sp, #OFFSET]
    for_pairs add_offset
    .endif
    ldr x, [sp, #X]
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    .rept UNROLL
    ldr r9, [x], #4
    sxtb16 r8, r9
    sxtb16 r9, r9, ror #8
    for_pairs multiply_\form
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
    narrow r0, r1, r2, r3
    narrow r4, r5, r6, r7
    ldrd r10, r11, [sp, #OUT]          /* and UNITS */
    subs r11, r11, #8
    blo .Lpart_\@
    str r0, [r10], #4
    str r4, [r10], #4
    strd r10, r11, [sp, #OUT]
    bne.w .Lblock_\@
    b .Lend_\@

.Lpart_\@:                               /* of a block: fewer than eight units */
    add r11, r11, #8
.Lbyte_\@:
    strb r0, [r10], #1
    lsr r0, r0, #8
    orr r0, r0, r4, lsl #24
    lsr r4, r4, #8
    subs r11, r11, #1
    bne .Lbyte_\@
.Lend_\@:
    add sp, sp, #FRAME
    pop {r4-r11, pc}
    .size \name, . - \name
.endm

dot arm_dsp_dot_ab_double, ab, 0
dot arm_dsp_dot_ab_single, ab, 1
dot arm_dsp_dot_bytes_double, bytes, 0
dot arm_dsp_dot_bytes_single, bytes, 1
