/* Rows of outputs of a depthwise convolution with any window, four channels at a time, for the channels after groups of 16.
 * Armv8.1-M with MVE (integer).
 *
 *   void mve_quads_<taps>_<mode>(uint8_t *y, const int8_t *x, const int32_t *constants, const int32_t *offsets,
 *                                int32_t rows, int32_t channels, const struct mve_lanes *d);
 *
 *   constants  for each quad: [3][4] bias, multiplier, rounder; [taps][4] weights
 *   channels   as in lanes.S; four are read and written at a time
 *   taps       1 to 4; odd, even: any odd or even number from 5 on
 *   mode       exact, lowered: rounding.py
 *
 * The constants of a quad stay in registers:
 *
 *   q2 bias, q3 multiplier, q4 rounder, q5 low, q6 high      q7 = sums of x in q0 times w in q1
 *
 * Instructions for 4 outputs: 13, 19, 24, 29 for one to four taps; from 5 on 18 (odd) or 24 (even), plus 12 for each further pair.
 * Mode lowered takes 2 more.
 */
#define X 0                            /* first tap of the quad; loaded with Y by one ldrd */
#define Y 4
#define X_ROW 8                        /* with ROWS_LEFT one ldrd */
#define ROWS_LEFT 12
#define COLUMNS 16
#define FRAME 24
#define SAVED (64 + 36)                /* d8-d15, nine core registers */
#define ROWS (FRAME + SAVED)
#define CHANNELS (ROWS + 4)
#define FIELDS (ROWS + 8)

#define FIELD_ZERO_POINT 28            /* of lanes.h */
#define FIELD_LOW 32                   /* and high */
#define FIELD_X_STEP 40
#define FIELD_X_ROW 44                 /* and columns */
#define FIELD_PAIRS 52
#define FIELD_GROUP_BYTES 56
#define FIELD_Y_STEP 60

#define WEIGHTS 48

#define y r0
#define x r1
#define constants r2
#define x_step r9
#define y_step r10
#define zero_point r12

#include "depthwise_asm.h"

.macro first_tap
    vldrb.s32 q0, [x]
    vldrb.s32 q1, [constants, #WEIGHTS]
    vmul.i32 q7, q0, q1
.endm

    /* A tap at \at, whose weights r6 points to. */
.macro tap at
    vldrb.s32 q0, [\at]
    vldrb.s32 q1, [r6], #4
    vmul.i32 q0, q0, q1
    vadd.i32 q7, q7, q0
.endm

    /* Tap \number, which is \offset after the first. */
.macro tap_behind number, offset
    add r4, x, \offset
    vldrb.s32 q0, [r4]
    vldrb.s32 q1, [constants, #(WEIGHTS + 4 * \number)]
    vmul.i32 q0, q0, q1
    vadd.i32 q7, q7, q0
.endm

    /* The tap's weights stay in q1. */
.macro sums_1
    vldrb.s32 q0, [x]
    vmul.i32 q7, q0, q1
.endm

.macro sums_2
    first_tap
    tap_behind 1, r8
.endm

.macro sums_3
    sums_2
    tap_behind 2, r5
.endm

.macro sums_4
    sums_3
    tap_behind 3, r6
.endm

    /* r11 points to offsets, r8 counts pairs after the first taps. Overwrites r4-r6, r11, lr. */
.macro further_pairs
    dls lr, r8
8:  ldrd r4, r5, [r11], #8
    add r4, r4, x
    add r5, r5, x
    tap r4
    tap r5
    le lr, 8b
.endm

.macro sums_odd
    first_tap
    mov r11, r3
    add r6, constants, #(WEIGHTS + 4)
    further_pairs
.endm

.macro sums_even
    first_tap
    ldr r4, [r3]
    add r4, r4, x
    add r6, constants, #(WEIGHTS + 4)
    tap r4
    add r11, r3, #4
    further_pairs
.endm

    /* \few: one to four taps, whose offsets stay in registers; lr counts pixels then, r7 otherwise. */
.macro quads taps, few, mode
    function mve_quads_\taps\()_\mode
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    strd x, y, [sp, #X]
    ldr r7, [sp, #FIELDS]
    ldr r4, [sp, #CHANNELS]
    vctp.32 r4
    ldr y_step, [r7, #FIELD_Y_STEP]
    ldr zero_point, [r7, #FIELD_ZERO_POINT]
    ldrd r4, r5, [r7, #FIELD_LOW]
    vdup.32 q5, r4
    vdup.32 q6, r5
    ldrd r4, r5, [r7, #FIELD_X_ROW]    /* and columns */
    str r4, [sp, #X_ROW]
    str r5, [sp, #COLUMNS]
    ldr x_step, [r7, #FIELD_X_STEP]
    .if \few
    ldr r8, [r3]
    .else
    ldr r8, [r7, #FIELD_PAIRS]
    .endif

    /* A quad. */
1:  ldr r4, [sp, #ROWS]
    str r4, [sp, #ROWS_LEFT]
    vldrw.32 q2, [constants]
    vldrw.32 q3, [constants, #16]
    vldrw.32 q4, [constants, #32]
    .ifc \taps,1
    vldrb.s32 q1, [constants, #WEIGHTS]
    .endif
2:  .if \few
    ldr lr, [sp, #COLUMNS]
    .if \few > 2
    ldrd r5, r6, [r3, #4]
    .endif
    .else
    ldr r7, [sp, #COLUMNS]
    .endif
3:  sums_\taps
    add x, x, x_step
    vadd.i32 q7, q7, q2
    scale \mode, q7, q3, q4, q0
    vadd.i32 q7, q7, zero_point
    vmax.s32 q7, q7, q5
    vmin.s32 q7, q7, q6
    vpst
    vstrbt.32 q7, [y]
    add y, y, y_step
    next_group \few, 4, r4, r5
    end_function mve_quads_\taps\()_\mode
.endm

.macro quads_modes taps, few
    quads \taps, \few, exact
    quads \taps, \few, lowered
.endm

    quads_modes 1, 1
    quads_modes 2, 2
    quads_modes 3, 3
    quads_modes 4, 4
    quads_modes odd, 0
    quads_modes even, 0
