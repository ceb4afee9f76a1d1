/* Depthwise 3x3 on a few rows without padding above and below, requantized to 8 bits. RV64 and RV32, P draft 0.9.11.
 *
 *   void rvp_depthwise[_once|_narrow|_wide]_rows_s<stride>[u[s]](const void *x, const int32_t *params, void *out,
 *                                                                int8_t *line, const int32_t *geometry);
 *
 * depthwise.h has the arguments. Strips of depthwise3x3_s8.S need four columns and many rows; here a column of the window is in a
 * lane, and each column of three pixels is transposed when it is reached. params are as in depthwise3x3_s8.S, with columns of
 * weights instead of rows. Results may replace the first row of their windows.
 *
 * A pixel has the channels c0 c1 c2 c3 in a lane. The first pass computes channels 0 and 2, the second 1 and 3:
 *
 *   row 0   a0 a1 a2 a3                          first pass         second pass
 *   row 1   b0 b1 b2 b3     column of channel    a0 b0 c0 (c1)      b1 a1 (c0) c1
 *   row 2   c0 c1 c2 c3     and of the next      a2 b2 c2 (c3)      b3 a3 (c2) c3     bytes in parentheses have the weight 0
 *
 * The first pass writes 16-bit lanes to a line, the second joins its bytes with them. Three columns stay in registers and rotate.
 * For each input column, the first pass also writes b1 a1 b3 a3 to the line, so that the second loads only row 2 of the image.
 *
 *   line     [columns before the loop] registers, then [output column][1 + stride]: a result, and columns from right to left
 */
.set single, 0                        /* two roundings */

#define in a0
#define out a1
#define row_step a2
#define column_step a3
#define end a4                        /* of the input's first row */
#define line a5
#define right a6                      /* whether a column of padding follows */
#define upper a7                      /* 0xff00 in every 16-bit lane */
#define x t0
#define c0 t0
#define c1 t1
#define y t2
#define z t3
#define multiplier0 t4
#define multiplier1 t5
#define rounder0 t6                   /* rounded once: zero points */
#define rounder1 ra                   /* rounded once: whether results are clamped */
#define WEIGHTS0 s0, s1, s2
#define WEIGHTS1 s3, s4, s5
#define COLUMN0 s6, s7
#define COLUMN1 s8, s9
#define COLUMN2 s10, s11

#define IN FRAME(13)                   /* of the first row */
#define OUT FRAME(14)
#define LINE FRAME(15)
#define PARAMS FRAME(16)
#define IN_ROW FRAME(17)
#define OUT_ROW FRAME(18)
#define ROWS FRAME(19)
#define ROWS_LEFT FRAME(20)
#define WIDTH FRAME(21)                /* bytes of an input row */
#define IN_STEP FRAME(22)              /* from an output row to the next */
#define OUT_STEP FRAME(23)
#define IN_END FRAME(24)               /* of the channels */
#define LEFT FRAME(25)
#define RIGHT FRAME(26)
#define FILL FRAME(27)
#define ZERO FRAME(28)
#define CLAMPS FRAME(29)
#define LOWEST FRAME(30)
#define HIGHEST FRAME(31)
#define FLIP FRAME(32)
#define BIAS0 FRAME(33)
#define BIAS1 FRAME(34)
#define SECOND0 FRAME(35)              /* second addends of weights, three registers */
#define SECOND1 FRAME(38)
#define FRAME_BYTES ((FRAME(41) + 15) & ~15)

/* Fields of rvp_depthwise_geometry. */
#define COLUMNS 1 * 4
#define ROW_STEP 2 * 4
#define COLUMN_STEP 3 * 4
#define OUT_ROWS 4 * 4
#define OUT_COLUMNS 5 * 4
#define OUT_ROW_STEP 6 * 4
#define LEFT_PADDING 9 * 4
#define FILL_VALUE 10 * 4
#define CLIP 11 * 4
#define CHANNELS 12 * 4

#include "frame_asm.h"
#include "products_asm.h"
#include "requantize_asm.h"

/* The next column of the window, for the two channels of each lane in this pass. Register `place` of the line belongs to it. */
.macro load_column x0, x1, place
    .if odd
    LX t0, (\place) * REGISTER_BYTES(line)
    LX t2, 0(in)
    .else
    LX t0, 0(in)
    add z, in, row_step
    LX t1, 0(z)
    add z, z, row_step
    LX t2, 0(z)
    swap8 t1, t1
    select_bits z, upper, t0, t1
    SX z, (\place) * REGISTER_BYTES(line)
    select_bits t0, upper, t1, t0
    .endif
    add in, in, column_step
    pack_low16 \x0, t0, t2
    pack_high16 \x1, t0, t2
.endm

.macro fill_column x0, x1
    LX \x0, FILL(sp)
    mv \x1, \x0
.endm

.macro multiply_column x0, x1, w0, w1, number
    multiply_either c0, \x0, \w0
    multiply_either c1, \x1, \w1
    .if split
    LX y, SECOND0 + FRAME(\number)(sp)
    LX z, SECOND1 + FRAME(\number)(sp)
    multiply_either c0, \x0, y
    multiply_either c1, \x1, z
    .endif
.endm

.macro multiply_window x00, x01, x10, x11, x20, x21, w00, w01, w02, w10, w11, w12
    LX c0, BIAS0(sp)
    LX c1, BIAS1(sp)
    multiply_column \x00, \x01, \w00, \w10, 0
    multiply_column \x10, \x11, \w01, \w11, 1
    multiply_column \x20, \x21, \w02, \w12, 2
.endm

.macro round1 c, multiplier, rounder
    .if once
    smmul.u \c, \c, \multiplier
    .else
    high_multiply_1 \c, \multiplier
    .if wide
    round_wide_1 \c, \rounder, y
    .else
    smmul.u \c, \c, \rounder
    .endif
    .endif
.endm

/* Requantizes the sums of an output column, and writes it in the second pass. Register `place` of the line belongs to it. */
.macro emit place
    round1 c0, multiplier0, rounder0
    round1 c1, multiplier1, rounder1
    pack_low16 c0, c0, c1
    .if once
    add16 c0, c0, rounder0
    .else
    LX y, ZERO(sp)
    add16 c0, c0, y
    .endif
    .if odd
    LX c1, (\place) * REGISTER_BYTES(line)
    kslli16_8 c0, c0
    select_bits c0, upper, c0, c1
    .if once
    beqz rounder1, .Lwrite\@
    .else
    LX y, CLAMPS(sp)
    beqz y, .Lwrite\@
    .endif
    load_bounds c1, y, z
    clamp_bytes c0, c1, y, z
.Lwrite\@:
    SX c0, 0(out)
    add out, out, column_step
    .else
    sclip16_7 c0, c0
    SX c0, (\place) * REGISTER_BYTES(line)
    .endif
.endm

/* An output column; the third column of its window is new, with stride 2 also the second. */
.macro column place, x00, x01, x10, x11, x20, x21
    .if stride == 2
    beq in, end, 4f
    load_column \x10, \x11, \place * 3 + 2
    .endif
    bne in, end, .Linside\@
    beqz right, 4f
    mv right, zero
    fill_column \x20, \x21
    j .Lcomplete\@
.Linside\@:
    load_column \x20, \x21, \place * (1 + stride) + 1
.Lcomplete\@:
    multiply_window \x00, \x01, \x10, \x11, \x20, \x21, WEIGHTS0, WEIGHTS1
    emit \place * (1 + stride)
.endm

.macro load_weights base, j, w0, w1, w2, multiplier, rounder, bias, second
    LX \w0, (\j * record + 0) * REGISTER_BYTES(\base)
    LX \w1, (\j * record + 1) * REGISTER_BYTES(\base)
    LX \w2, (\j * record + 2) * REGISTER_BYTES(\base)
    LX c0, (\j * record + 3) * REGISTER_BYTES(\base)
    LX \multiplier, (\j * record + 4) * REGISTER_BYTES(\base)
    LX \rounder, (\j * record + 5) * REGISTER_BYTES(\base)
    SX c0, \bias(sp)
    .if split
    .irp i, 0, 1, 2
    LX c0, (\j * record + 6 + \i) * REGISTER_BYTES(\base)
    SX c0, \second + FRAME(\i)(sp)
    .endr
    .endif
.endm

/* Channels `of_odd` and `of_odd` + 2 of each lane, of a row. */
.macro pass of_odd
    .set odd, \of_odd
    LX y, PARAMS(sp)
    load_weights y, odd, WEIGHTS0, multiplier0, rounder0, BIAS0, SECOND0
    load_weights y, (odd + 2), WEIGHTS1, multiplier1, rounder1, BIAS1, SECOND1
    .if once
    without_mark multiplier0
    pack_low16 rounder0, rounder0, rounder1
    LX rounder1, CLAMPS(sp)
    .endif
    .if wide
    without_mark rounder0
    .endif
    LX in, IN_ROW(sp)
    LX out, OUT_ROW(sp)
    LX line, LINE(sp)
    LX right, RIGHT(sp)
    LX y, WIDTH(sp)
    LX c0, LEFT(sp)
    .if odd
    add in, in, row_step
    add in, in, row_step
    .endif
    add end, in, y
    bnez c0, 2f
    load_column COLUMN0, stride - 3
    j 3f
2:  fill_column COLUMN0
3:
    .if stride == 1
    load_column COLUMN1, -1
5:  column 0, COLUMN0, COLUMN1, COLUMN2
    column 1, COLUMN1, COLUMN2, COLUMN0
    column 2, COLUMN2, COLUMN0, COLUMN1
    .else
5:  column 0, COLUMN0, COLUMN1, COLUMN2
    column 1, COLUMN2, COLUMN1, COLUMN0
    .endif
    addi line, line, (4 - stride) * (1 + stride) * REGISTER_BYTES
    j 5b
4:
.endm

.macro rows name, of_stride, is_unsigned, is_split, is_wide, is_once
    .set stride, \of_stride
    .set unsigned, \is_unsigned
    .set split, \is_split
    .set wide, \is_wide
    .set once, \is_once
    .set record, 6 + 3 * split       /* registers of params for each j */
    function \name
    addi sp, sp, -FRAME_BYTES
    save EVERY_SAVED
    SX a0, IN(sp)
    SX a1, PARAMS(sp)
    SX a2, OUT(sp)
    addi a3, a3, (3 - stride) * REGISTER_BYTES
    SX a3, LINE(sp)
    lw t0, OUT_COLUMNS(a4)
    lw t1, LEFT_PADDING(a4)
    lw t2, COLUMNS(a4)
    lw t3, OUT_ROWS(a4)
    lw t4, OUT_ROW_STEP(a4)
    lw t5, CLIP(a4)
    lw t6, FILL_VALUE(a4)
    lw s0, CHANNELS(a4)
    lw row_step, ROW_STEP(a4)
    lw column_step, COLUMN_STEP(a4)
    add s0, s0, a0
    SX s0, IN_END(sp)
    SX t1, LEFT(sp)
    SX t3, ROWS(sp)
    SX t4, OUT_STEP(sp)
    addi t0, t0, -1                    /* whether the last window ends after the last column */
    .if stride == 2
    slli t0, t0, 1
    .endif
    addi t0, t0, 2
    sub t0, t0, t1
    slt t0, t0, t2
    xori t0, t0, 1
    SX t0, RIGHT(sp)
    mul t2, t2, column_step
    SX t2, WIDTH(sp)
    slli t1, row_step, stride - 1
    SX t1, IN_STEP(sp)
    splat_byte t6, t0
    SX t6, FILL(sp)
    upper_bytes upper
    zero_point_of t0, t5
    SX t0, ZERO(sp)
    slli t1, t5, REGISTER_BYTES * 8 - 32
    srli t1, t1, REGISTER_BYTES * 8 - 24
    li t0, CLIPS_AS_INT8
    xor t0, t0, t1
    SX t0, CLAMPS(sp)
    beqz t0, 6f
    keep_bounds t5
6:  LX t0, IN(sp)                      /* a group of channels */
    LX t1, OUT(sp)
    LX t2, ROWS(sp)
1:  SX t0, IN_ROW(sp)
    SX t1, OUT_ROW(sp)
    SX t2, ROWS_LEFT(sp)
    pass 0
    pass 1
    LX t0, IN_ROW(sp)
    LX t1, OUT_ROW(sp)
    LX t2, ROWS_LEFT(sp)
    LX t3, IN_STEP(sp)
    LX t4, OUT_STEP(sp)
    addi t2, t2, -1
    add t0, t0, t3
    add t1, t1, t4
    bnez t2, 1b
    LX t0, IN(sp)
    LX t1, OUT(sp)
    LX t2, PARAMS(sp)
    LX t3, IN_END(sp)
    addi t0, t0, REGISTER_BYTES
    addi t1, t1, REGISTER_BYTES
    addi t2, t2, 4 * record * REGISTER_BYTES
    SX t0, IN(sp)
    SX t1, OUT(sp)
    SX t2, PARAMS(sp)
    bltu t0, t3, 6b
    leave EVERY_SAVED
    end_function \name
.endm

/* Selects the rounding of a group by its marks (packing.py). */
.macro all_roundings name, of_stride, is_unsigned, is_split
rows rvp_depthwise_narrow_rows_\name, \of_stride, \is_unsigned, \is_split, 0, 0
rows rvp_depthwise_wide_rows_\name, \of_stride, \is_unsigned, \is_split, 1, 0
rows rvp_depthwise_once_rows_\name, \of_stride, \is_unsigned, \is_split, 0, 1
    function rvp_depthwise_rows_\name
    lw t0, (5 * LANES - 1) * 4(a1)
    lw t1, (6 * LANES - 1) * 4(a1)
    bltz t0, 1f
    bltz t1, 2f
    tail rvp_depthwise_narrow_rows_\name
1:  tail rvp_depthwise_once_rows_\name
2:  tail rvp_depthwise_wide_rows_\name
    end_function rvp_depthwise_rows_\name
.endm

.irp s, 1, 2
all_roundings s\s, \s, 0, 0
all_roundings s\s\()u, \s, 1, 0
all_roundings s\s\()us, \s, 1, 1
.endr
