/* Start-up of a single hart in machine mode.
 *
 * RAM, low to high:  stack (grows down) | .data | .tdata .tbss | .bss with the arena | .tohost
 * The stack lies at the bottom so that an overflow runs out of RAM and traps, instead of overwriting the arena.
 */
#if __riscv_xlen == 64
#define LOAD ld
#define STORE sd
#define WORD 8
#else
#define LOAD lw
#define STORE sw
#define WORD 4
#endif

#define CLINT_MTIMECMP 0x02004000
#define MSTATUS_FS_VS_DIRTY 0x6600
#define PMP_TOR_LOCKED_RX 0x8d /* L | top of range | X | R: binds machine mode too */
#define TRAP_STACK_BYTES 512
#define STACK_PAINT 0xa5a5a5a5
#define OTHER_START_(number) __other_##number##_start /* of a region: stages/backends/targets/linker_script.py */
#define OTHER_END_(number) __other_##number##_end
#define OTHER_START(number) OTHER_START_(number)
#define OTHER_END(number) OTHER_END_(number)

/* Copies the words from `load` on to [start, end). */
    .macro copy load, start, end
    la t0, \load
    la t1, \start
    la t2, \end
1:  bgeu t1, t2, 2f
    LOAD t3, 0(t0)
    STORE t3, 0(t1)
    addi t0, t0, WORD
    addi t1, t1, WORD
    j 1b
2:
    .endm

    .section .text.init, "ax", @progbits
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
    la tp, __tls_base
    la t0, trap_entry
    csrw mtvec, t0

#ifndef BOARD_DEBUGGER /* a board may have its timer elsewhere, and no PMP */
    /* No timer interrupt until the watchdog is armed. */
    li t0, CLINT_MTIMECMP
    li t1, -1
    sw t1, 0(t0)
    sw t1, 4(t0)
#endif

#if defined(__riscv_flen) || defined(__riscv_vector) || defined(CORE_HAS_VECTOR)
    li t0, MSTATUS_FS_VS_DIRTY
    csrs mstatus, t0
#endif

#if !defined(CODE_IS_WRITTEN) && !defined(BOARD_DEBUGGER)
    /* ROM is read-only: entry 0 is its start, entry 1 the range up to its end. */
    la t0, __rom_start
    srli t0, t0, 2
    csrw pmpaddr0, t0
    la t0, __rom_end
    srli t0, t0, 2
    csrw pmpaddr1, t0
#ifdef OTHER_ROM
    /* So is a second one: entries 2 and 3. */
    la t0, OTHER_START(OTHER_ROM)
    srli t0, t0, 2
    csrw pmpaddr2, t0
    la t0, OTHER_END(OTHER_ROM)
    srli t0, t0, 2
    csrw pmpaddr3, t0
    li t0, PMP_TOR_LOCKED_RX << 24 | PMP_TOR_LOCKED_RX << 8
#else
    li t0, PMP_TOR_LOCKED_RX << 8
#endif
    csrw pmpcfg0, t0
#endif

    copy __data_load, __data_start, __data_end
#ifdef COPIED /* weights: stages/backends/targets/linker_script.py */
#define COPY(number) copy __copied_##number##_load, __copied_##number##_start, __copied_##number##_end;
    COPIED
#endif

    la t1, __bss_start
    la t2, __bss_end
3:  bgeu t1, t2, 4f
    STORE zero, 0(t1)
    addi t1, t1, WORD
    j 3b

    /* Paint the stack; board_stack_used looks for the first word that changed. */
4:  la t1, __stack_bottom
    li t0, STACK_PAINT
5:  bgeu t1, sp, 6f
    sw t0, 0(t1)
    addi t1, t1, 4
    j 5b

6:  li a0, 0
    li a1, 0
    call main
    call board_exit

    /* A trap never returns, so no register is saved. The trap may be a broken stack, so the report has a separate one. */
    .align 2
trap_entry:
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mtval
    mv a3, ra
    mv a4, sp
    la sp, trap_stack + TRAP_STACK_BYTES
    call trap_report

    .section .bss.trap_stack, "aw", @nobits
    .align 4
trap_stack:
    .zero TRAP_STACK_BYTES
