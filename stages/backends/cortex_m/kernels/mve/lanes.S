/* Rows of outputs of a depthwise convolution with any window, 16 channels at a time. Armv8.1-M with MVE (integer).
 *
 *   void mve_lanes_<taps>_<mode>[_clipped](uint8_t *y, const int8_t *x, const int32_t *constants, const int32_t *offsets,
 *                                          int32_t rows, int32_t channels, const struct mve_lanes *d);
 *
 *   y          consecutive rows of d->columns pixels; pixels are d->y_step bytes apart
 *   x          the first tap of the first window. Windows are d->x_step bytes apart; after a row d->x_row bytes are added
 *   constants  for each group: [3][4][4] bias, multiplier, rounder (vector j has channels j, j + 4, j + 8, j + 12); [taps][16] weights
 *   offsets    bytes from the first tap to each of the others
 *   channels   of x and y. Groups are consecutive; the last one ends at the last channel and may overlap the one before it. With
 *              fewer than 16 channels, 16 bytes are read, but only `channels` are written
 *   taps       1 to 4; odd, even: any odd or even number from 5 on
 *   mode       exact, lowered: rounding.py
 *   clipped    clips to low ... high and flips the top bit; without it, narrowing saturates to int8
 *
 * The arithmetic is that of depthwise3x3.S: two taps at a time, whose products are added in int16 (packing checks that the weights
 * of a pair are never both -128). One or two taps need no other sums:
 *
 *   q4 = vmullb x w, q5 = vmullt x w        + q6, q7 of a second tap
 *   q4 ... q7 = vmovlb q4, vmovlb q5, vmovlt q4, vmovlt q5
 *
 * An odd number of taps begins with a single one. Instructions for 16 outputs: 45, 52, 66, 73 for one to four taps; from 5 on 49
 * (odd) or 57 (even), plus 23 for each further pair. Mode lowered takes 8 more; clipped takes 4 more, or 6 from three taps on.
 */
#define LOW 0                          /* the frame: vectors that clip */
#define HIGH 16
#define FLIP 32
#define X 48                           /* first tap of the group; loaded with Y by one ldrd */
#define Y 52
#define X_ROW 56                       /* with ROWS_LEFT one ldrd */
#define ROWS_LEFT 60
#define COLUMNS 64
#define FRAME 72
#define SAVED (64 + 36)                /* d8-d15, nine core registers */
#define ROWS (FRAME + SAVED)
#define CHANNELS (ROWS + 4)
#define FIELDS (ROWS + 8)

#define FIELD_FLIP 24                  /* of lanes.h, then zero_point, low, high */
#define FIELD_X_STEP 40
#define FIELD_X_ROW 44                 /* and columns */
#define FIELD_PAIRS 52
#define FIELD_GROUP_BYTES 56
#define FIELD_Y_STEP 60

#define MULTIPLIER 64
#define ROUNDER 128
#define WEIGHTS 192

#define y r0
#define x r1
#define constants r2
#define x_step r4
#define y_step r5
#define zero_point r6

#include "depthwise_asm.h"

    /* Adds the products of one tap, or the sums of two taps, in q4 and q5, to the sums of all taps. */
.macro widen
    vmovlt.s16 q6, q4
    vmovlb.s16 q4, q4
    vmovlt.s16 q7, q5
    vmovlb.s16 q5, q5
.endm

.macro products_of_first
    vldrb.8 q0, [x]
    vldrw.32 q1, [constants, #WEIGHTS]
    vmullb.s8 q4, q0, q1
    vmullt.s8 q5, q0, q1
.endm

.macro first_tap
    products_of_first
    widen
.endm

    /* The second tap is \offset after the first. */
.macro first_taps offset
    products_of_first
    add r12, x, \offset
    vldrb.8 q0, [r12]
    vldrw.32 q1, [constants, #(WEIGHTS + 16)]
    vmullb.s8 q6, q0, q1
    vmullt.s8 q7, q0, q1
    vadd.i16 q4, q4, q6
    vadd.i16 q5, q5, q7
    widen
.endm

    /* The offset of tap \tap, or of the next tap, at r11. */
.macro load_weights tap
    .ifc \tap,next
    vldrw.32 q1, [r11], #16
    .else
    vldrw.32 q1, [constants, #(WEIGHTS + 16 * \tap)]
    .endif
.endm

    /* Two more taps, with activations at \a and \b. The second ones are loaded twice, because their register takes a product. */
.macro two_taps a, tap_a, b, tap_b
    vldrb.8 q0, [\a]
    load_weights \tap_a
    vmullb.s8 q2, q0, q1
    vmullt.s8 q3, q0, q1
    vldrb.8 q0, [\b]
    load_weights \tap_b
    vmullb.s8 q0, q0, q1
    vadd.i16 q2, q2, q0
    vldrb.8 q0, [\b]
    vmullt.s8 q0, q0, q1
    vadd.i16 q3, q3, q0
    add_products
.endm

.macro sums_1
    first_tap
.endm

.macro sums_2
    first_taps r9
.endm

.macro sums_3
    first_tap
    add r12, x, r9
    add r3, x, r10
    two_taps r12, 1, r3, 2
.endm

.macro sums_4
    first_taps r9
    add r12, x, r10
    add r3, x, r11
    two_taps r12, 2, r3, 3
.endm

    /* r9 has the offsets, r10 counts pairs after the first taps. Overwrites r3, r8, r11, r12, lr. */
.macro further_pairs
    dls lr, r10
8:  ldrd r8, r12, [r3], #8
    add r8, r8, x
    add r12, r12, x
    two_taps r8, next, r12, next
    le lr, 8b
.endm

.macro sums_odd
    first_tap
    mov r3, r9
    add r11, constants, #(WEIGHTS + 16)
    further_pairs
.endm

.macro sums_even
    ldr r12, [r9]
    first_taps r12
    add r3, r9, #4
    add r11, constants, #(WEIGHTS + 32)
    further_pairs
.endm

    /* Vector \j of the sums. */
.macro scale_vector sum, j, mode
    vldrw.32 q0, [constants, #(16 * \j)]
    vadd.i32 \sum, \sum, q0
    vldrw.32 q0, [constants, #(MULTIPLIER + 16 * \j)]
    vldrw.32 q1, [constants, #(ROUNDER + 16 * \j)]
    scale \mode, \sum, q0, q1, q0
.endm

    /* The sums to bytes at y. */
.macro put mode, clipped, clips_in_registers
    sums_to_bytes \mode, zero_point
    .ifc \clipped,_clipped
    .ifeq \clips_in_registers
    vldrw.32 q2, [sp, #LOW]
    vldrw.32 q3, [sp, #HIGH]
    .endif
    vmax.s8 q4, q4, q2
    vmin.s8 q4, q4, q3
    vldrw.32 q0, [sp, #FLIP]
    veor q4, q4, q0
    .endif
    vpst
    vstrbt.8 q4, [y]
    add y, y, y_step
.endm

    /* \few: one to four taps, whose offsets stay in registers; lr counts pixels then, r7 otherwise. */
.macro lanes taps, few, clips_in_registers, mode, clipped
    function mve_lanes_\taps\()_\mode\clipped
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    strd x, y, [sp, #X]
    ldr r7, [sp, #FIELDS]
    ldr r12, [sp, #CHANNELS]
    vctp.8 r12
    ldr y_step, [r7, #FIELD_Y_STEP]
    ldrd r11, zero_point, [r7, #FIELD_FLIP]
    .ifc \clipped,_clipped
    ldrd r8, r12, [r7, #(FIELD_FLIP + 8)]
    vdup.8 q0, r11
    vdup.8 q2, r8
    vdup.8 q3, r12
    vstrw.32 q0, [sp, #FLIP]
    vstrw.32 q2, [sp, #LOW]
    vstrw.32 q3, [sp, #HIGH]
    .endif
    ldrd r12, r8, [r7, #FIELD_X_ROW]   /* and columns */
    str r12, [sp, #X_ROW]
    str r8, [sp, #COLUMNS]
    ldr x_step, [r7, #FIELD_X_STEP]
    .if \few
    ldr r9, [r3]
    .if \few > 2
    ldrd r10, r11, [r3, #4]
    .endif
    .else
    mov r9, r3
    ldr r10, [r7, #FIELD_PAIRS]
    .endif

    /* A group. */
1:  ldr r12, [sp, #ROWS]
    str r12, [sp, #ROWS_LEFT]
2:  .if \few
    ldr lr, [sp, #COLUMNS]
    .else
    ldr r7, [sp, #COLUMNS]
    .endif
3:  sums_\taps
    add x, x, x_step
    put \mode, \clipped, \clips_in_registers
    next_group \few, 16, r12, r8
    end_function mve_lanes_\taps\()_\mode\clipped
.endm

.macro lanes_modes taps, few, clips_in_registers
    lanes \taps, \few, \clips_in_registers, exact
    lanes \taps, \few, \clips_in_registers, lowered
    lanes \taps, \few, \clips_in_registers, exact, _clipped
    lanes \taps, \few, \clips_in_registers, lowered, _clipped
.endm

    lanes_modes 1, 1, 1
    lanes_modes 2, 2, 1
    lanes_modes 3, 3, 0
    lanes_modes 4, 4, 0
    lanes_modes odd, 0, 0
    lanes_modes even, 0, 0
