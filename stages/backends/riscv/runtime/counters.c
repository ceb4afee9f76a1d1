/* Instruction counter and watchdog of a RISC-V hart with a core-local interrupter (CLINT). */
#include <stdint.h>

#include "board.h"
#include "csr.h"

#define CLINT_MTIMECMP ((volatile uint32_t *)0x02004000)
#define CLINT_MTIME ((volatile uint32_t *)0x0200bff8)
#define MIE_MTIE (1u << 7)
#define MSTATUS_MIE (1u << 3)

/* Spike advances mtime by 50 after every 5,000 instructions: the watchdog is deterministic, and that coarse. */
#define INSTRUCTIONS_PER_TICK 100

uint64_t board_instructions(void)
{
#if __riscv_xlen == 64
    return csr_read(minstret);
#else
    /* Read the low half between two equal readings of the high half. */
    uint32_t high, low, again;
    do {
        high = csr_read(minstreth);
        low = csr_read(minstret);
        again = csr_read(minstreth);
    } while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}

static uint64_t timer_now(void)
{
    uint32_t high, low;
    do {
        high = CLINT_MTIME[1];
        low = CLINT_MTIME[0];
    } while (high != CLINT_MTIME[1]);
    return (uint64_t)high << 32 | low;
}

void board_watchdog(uint64_t instructions)
{
    csr_clear(mie, MIE_MTIE);
    if (instructions == 0)
        return;
    uint64_t deadline = timer_now() + instructions / INSTRUCTIONS_PER_TICK + 1;
    CLINT_MTIMECMP[1] = UINT32_MAX; /* so that between the two stores the deadline is not in the past */
    CLINT_MTIMECMP[0] = (uint32_t)deadline;
    CLINT_MTIMECMP[1] = (uint32_t)(deadline >> 32);
    csr_set(mie, MIE_MTIE);
    csr_set(mstatus, MSTATUS_MIE);
}
