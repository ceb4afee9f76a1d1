/* Macros for matrix products in A64 assembly: functions, scaling, ends of rows, and tiles of rows that are read in place.
 *
 * The including file defines these registers, in addition to those that neon_requantize.h requires:
 *   columns     a w register: columns left in this tile
 *   mode        a w register: MODE_ of neon_requantize.h
 *   FIRST_BIAS  the first sum of the first row, which initially holds the bias
 *   offsets     an x register: a number for each row of the tile; NULL: none
 *   tiles       a w register: tiles left
 *
 * It also defines `rows`, the number of rows of a tile, and a macro `for_rows`, which calls an operation for each row with
 *   argument  as the caller passed it
 *   out       the register with the address of the row's output, which advances
 *   number    the number of the row, or the lane of its activations
 *   c0, ...   the numbers of the vector registers of its sums; c0 has the first four columns
 * x16 is free between the macros.
 */
#pragma once

#include "neon_gemm.h"
#include "neon_requantize.h"

#define temporary x16

.macro function name
    .section .text.\name, "ax"
    .balign 16
    .globl \name
    .type \name, %function
\name:
    save_vectors
.endm

.macro end_function name
    restore_vectors
    ret
    .size \name, . - \name
.endm

/* Scales sums in the mode `mode`. */
.macro by_mode scale
    cbnz mode, 1f
    \scale MODE_HALVES
    b 3f
1:  cmp mode, #MODE_ONCE
    b.eq 2f
    \scale MODE_SHIFTS
    b 3f
2:  \scale MODE_ONCE
3:
.endm

/* If there are offsets, executes `operation` on each row: it adds the number at `temporary` and advances `temporary`. */
.macro add_offsets operation
    cbz offsets, 1f
    mov temporary, offsets
    for_rows \operation
1:
.endm

/* Operations on a row in a block of four columns. Row 0 has the bias already. */
.macro start_4 argument, out, number, c0, others:vararg
    .ifnc v\c0, FIRST_BIAS
    mov v\c0\().16b, FIRST_BIAS.16b
    .endif
.endm

.macro finish_4 argument, out, number, c0, others:vararg
    narrow_4 v\c0
    str s\c0, [\out], #4
.endm

.macro finish_bytes argument, out, number, c0, others:vararg
    narrow_4 v\c0
    store_bytes v\c0, \out, columns, w16
.endm

/* Writes a block of four columns, or the remaining ones, by `each`: for_rows or a similar macro. Jumps to `next` while there are more
 * columns.
 */
.macro write_4 next, each, four=finish_4, fewer=finish_bytes
    subs columns, columns, #4
    b.lt 1f
    \each \four
    b.ne \next
    b 2f
1:  add columns, columns, #4
    \each \fewer
2:
.endm

/* Advances `offsets`, if there are any, and jumps to `tile` if tiles are left. */
.macro next_tile tile
    cbz offsets, 1f
    add offsets, offsets, #4 * rows
1:  subs tiles, tiles, #1
    b.ne \tile
.endm
