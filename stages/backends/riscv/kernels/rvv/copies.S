/* Copies of runs of bytes at any alignment, and of bytes that are not consecutive.
 *
 * Short runs are copied by columns: a vector has one byte of each run.
 *
 *     x   | a0 a1 | a2 ... | b0 b1 | b2 ...      runs of two bytes
 *     v8  | a0 b0 c0 ...                         first turn
 *     v8  | a1 b1 c1 ...                         second turn
 */
#include "rvv_asm.h"

/* void rvv_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step)
 *
 * `rows` > 0 runs of `bytes` > 0 neighbours; each begins y_step (x_step) bytes after the one before. x may overlap y in the same
 * row, and is then not below y. */
#define y a0
#define x a1
#define rows a2
#define bytes a3
#define y_step a4
#define x_step a5
#define vl t0
#define count t1
#define from t2
#define to t3
#define stride t4

function rvv_copy_rows
    bltu bytes, rows, 3f
1:  mv to, y
    mv from, x
    mv count, bytes
2:  vsetvli vl, count, e8, m8, ta, ma
    vle8.v v8, (from)
    vse8.v v8, (to)
    sub count, count, vl
    add from, from, vl
    add to, to, vl
    bnez count, 2b
    add y, y, y_step
    add x, x, x_step
    addi rows, rows, -1
    bnez rows, 1b
    ret
3:  mv to, y
    mv from, x
    mv count, rows
4:  vsetvli vl, count, e8, m8, ta, ma
    vlse8.v v8, (from), x_step
    vsse8.v v8, (to), y_step
    sub count, count, vl
    beqz count, 5f
    mul stride, x_step, vl
    add from, from, stride
    mul stride, y_step, vl
    add to, to, stride
    j 4b
5:  addi y, y, 1
    addi x, x, 1
    addi bytes, bytes, -1
    bnez bytes, 3b
    ret
end_function rvv_copy_rows

#undef x
#undef rows
#undef bytes
#undef y_step
#undef x_step

/* void rvv_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step)
 *
 * `rows` > 0 runs of `bytes` > 0 times `value`. */
#define value a1
#define rows a2
#define bytes a3
#define step a4

function rvv_fill_rows
    vsetvli vl, zero, e8, m8, ta, ma
    vmv.v.x v8, value
    bltu bytes, rows, 3f
1:  mv to, y
    mv count, bytes
2:  vsetvli vl, count, e8, m8, ta, ma
    vse8.v v8, (to)
    sub count, count, vl
    add to, to, vl
    bnez count, 2b
    add y, y, step
    addi rows, rows, -1
    bnez rows, 1b
    ret
3:  mv to, y
    mv count, rows
4:  vsetvli vl, count, e8, m8, ta, ma
    vsse8.v v8, (to), step
    sub count, count, vl
    mul stride, step, vl
    add to, to, stride
    bnez count, 4b
    addi y, y, 1
    addi bytes, bytes, -1
    bnez bytes, 3b
    ret
end_function rvv_fill_rows

#undef value
#undef rows
#undef bytes
#undef step

/* void rvv_copy_bytes(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_row, int32_t y_column, int32_t x_row,
 *                     int32_t x_column)
 *
 * y[r * y_row + c * y_column] = x[r * x_row + c * x_column], r < rows, c < columns. Vectors are along the longer axis. */
#define x a1
#define rows a2
#define columns a3
#define y_row a4
#define y_column a5
#define x_row a6
#define x_column a7

function rvv_copy_bytes
    bgeu columns, rows, 1f
    mv vl, rows
    mv rows, columns
    mv columns, vl
    mv vl, y_row
    mv y_row, y_column
    mv y_column, vl
    mv vl, x_row
    mv x_row, x_column
    mv x_column, vl
1:  mv to, y
    mv from, x
    mv count, columns
2:  vsetvli vl, count, e8, m8, ta, ma
    vlse8.v v8, (from), x_column
    vsse8.v v8, (to), y_column
    sub count, count, vl
    beqz count, 3f
    mul stride, x_column, vl
    add from, from, stride
    mul stride, y_column, vl
    add to, to, stride
    j 2b
3:  add y, y, y_row
    add x, x, x_row
    addi rows, rows, -1
    bnez rows, 1b
    ret
end_function rvv_copy_bytes

#undef rows
#undef columns
#undef y_row
#undef y_column
#undef x_row
#undef x_column

/* void rvv_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
 *                  int32_t bytes, int32_t x_step)
 *
 * An image of height by width pixels of `bytes` bytes. Pixel (i, j) is the pixel at row rows[i] and column columns[j] of x, whose
 * rows have x_step bytes. Pixels of up to 8 bytes are gathered, one byte of 32 pixels (at a VLEN of 128) at a time. */
#define rows a2
#define columns a3
#define height a4
#define width a5
#define bytes a6
#define x_step a7
#define column t4
#define pixels t5
#define short t6

function rvv_nearest
    sltiu short, bytes, 9
1:  lw from, (rows)
    mul from, from, x_step
    add from, from, x
    mv column, columns
    mv pixels, width
    beqz short, 5f
2:  vsetvli vl, pixels, e32, m8, ta, ma
    vle32.v v8, (column)
    vmul.vx v8, v8, bytes
    vsetvli zero, zero, e8, m2, ta, ma
    mv to, y
    mv count, bytes
3:  vluxei32.v v2, (from), v8
    vsse8.v v2, (to), bytes
    addi from, from, 1
    addi to, to, 1
    addi count, count, -1
    bnez count, 3b
    sub from, from, bytes
    sub pixels, pixels, vl
    mul to, bytes, vl
    add y, y, to
    slli vl, vl, 2
    add column, column, vl
    bnez pixels, 2b
    j 8f
5:  lw to, (column)
    mul to, to, bytes
    add to, to, from
    mv count, bytes
6:  vsetvli vl, count, e8, m8, ta, ma
    vle8.v v8, (to)
    vse8.v v8, (y)
    sub count, count, vl
    add to, to, vl
    add y, y, vl
    bnez count, 6b
    addi column, column, 4
    addi pixels, pixels, -1
    bnez pixels, 5b
8:  addi rows, rows, 4
    addi height, height, -1
    bnez height, 1b
    ret
end_function rvv_nearest
