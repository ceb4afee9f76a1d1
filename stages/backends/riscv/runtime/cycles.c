/* Cycles of a RISC-V hart on a board: mcycle. */
#include <stdint.h>

#include "board.h"
#include "csr.h"

enum { MCYCLE = 3 };
volatile uint32_t debugger_counter = MCYCLE; /* for the debugger */

/* Some cores come out of reset with their counters inhibited: mcountinhibit, 0x320, where there is one. Where there is
 * none the write traps, to the line after it.
 */
static void start(void)
{
    unsigned long vector;
    __asm__ volatile("la %0, 1f\n\t"
                     "csrrw %0, mtvec, %0\n\t"
                     "csrci 0x320, 1\n\t"
                     ".balign 4\n"
                     "1:\n\t"
                     "csrw mtvec, %0"
                     : "=&r"(vector)
                     :
                     : "memory");
}

uint64_t board_instructions(void)
{
    static int started;
    if (!started) {
        start();
        started = 1;
    }
#if __riscv_xlen == 64
    return csr_read(mcycle);
#else
    /* Read the low half between two equal readings of the high half. */
    uint32_t high, low, again;
    do {
        high = csr_read(mcycleh);
        low = csr_read(mcycle);
        again = csr_read(mcycleh);
    } while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}
