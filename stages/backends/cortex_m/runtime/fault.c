/* Reports a fault to the host as one line, which stages/backends/qemu/fault.py reads, and ends the program. */
#include <stdint.h>

#include "board.h"
#include "console.h"

enum { FAULT_EXIT_CODE = 99 };

#define SCB_CFSR (*(volatile uint32_t *)0xE000ED28)
#define SCB_HFSR (*(volatile uint32_t *)0xE000ED2C)
#define SCB_MMFAR (*(volatile uint32_t *)0xE000ED34)
#define SCB_BFAR (*(volatile uint32_t *)0xE000ED38)
#define CFSR_MMARVALID (1u << 7)
#define CFSR_STACKING (1u << 4 | 1u << 5 | 1u << 12 | 1u << 13) /* MSTKERR, MLSPERR, STKERR, LSPERR */

extern uint32_t __stack_bottom[], __stack_top[];

/* The registers that the core pushes on entry to an exception; only the first eight words, without floating-point registers. */
struct frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static char line[] = "FAULT cfsr=00000000 hfsr=00000000 pc=00000000 lr=00000000 addr=00000000 sp=00000000\n";
enum { CFSR_AT = 11, HFSR_AT = 25, PC_AT = 37, LR_AT = 49, ADDRESS_AT = 63, SP_AT = 75 };

static void write_hex(char *digits, uint32_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 4)
        digits[i] = "0123456789abcdef"[value & 15];
}

_Noreturn void fault_report(const struct frame *frame);

/* The frame is read only where the core could write it. */
_Noreturn void fault_report(const struct frame *frame)
{
    uint32_t cfsr = SCB_CFSR;
    uintptr_t at = (uintptr_t)frame;
    int readable = (cfsr & CFSR_STACKING) == 0 && at >= (uintptr_t)__stack_bottom && at < (uintptr_t)__stack_top;
    write_hex(line + CFSR_AT, cfsr);
    write_hex(line + HFSR_AT, SCB_HFSR);
    write_hex(line + PC_AT, readable ? frame->pc : 0);
    write_hex(line + LR_AT, readable ? frame->lr : 0);
    write_hex(line + ADDRESS_AT, cfsr & CFSR_MMARVALID ? SCB_MMFAR : SCB_BFAR);
    write_hex(line + SP_AT, (uint32_t)at);
    console_write(line, sizeof line - 1);
    board_exit(FAULT_EXIT_CODE);
}
