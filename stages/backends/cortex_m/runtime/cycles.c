/* Cycles of the core on a board: DWT's counter, or SysTick if DWT has no counter or it does not count.
 *
 * Registers: Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals, "Data Watchpoint and Trace" and "SysTick".
 * Neither counts while a debugger has halted the core.
 */
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "console.h"

#define DEMCR (*(volatile uint32_t *)0xE000EDFC)
#define DEMCR_TRCENA (1u << 24)
#define DWT_CTRL (*(volatile uint32_t *)0xE0001000)
#define DWT_CTRL_CYCCNTENA 1u
#define DWT_CTRL_NOCYCCNT (1u << 25)
#define DWT_CYCCNT (*(volatile uint32_t *)0xE0001004)
#define DWT_LAR (*(volatile uint32_t *)0xE0001FB0) /* Cortex-M7 */
#define DWT_UNLOCK 0xC5ACCE55u
#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
#define ICSR (*(volatile uint32_t *)0xE000ED04)
#define ICSR_PENDSTSET (1u << 26)
#define SYST_ON 7u /* counts the core's clock, and interrupts at 0 */
#define SYST_PERIOD (1u << 24)
#define SYST_PATIENCE (1 << 26)

/* For the debugger. */
enum { NOTHING, DWT_CYCLES, SYSTICK_CYCLES };
volatile uint32_t debugger_counter;

static volatile uint32_t periods; /* of SysTick */

void tick(void);

void tick(void) /* in the vector table of startup.S */
{
    periods++;
}

static int starts_dwt(void)
{
#ifdef __ARM_ARCH_6M__
    return 0;
#else
    DEMCR |= DEMCR_TRCENA;
    DWT_LAR = DWT_UNLOCK;
    if (DWT_CTRL & DWT_CTRL_NOCYCCNT)
        return 0;
    DWT_CYCCNT = 0;
    DWT_CTRL |= DWT_CTRL_CYCCNTENA;
    for (int i = 0; i < 8; i++)
        __asm__ volatile("nop");
    return DWT_CYCCNT != 0;
#endif
}

static void start(void)
{
    if (starts_dwt()) {
        debugger_counter = DWT_CYCLES;
        return;
    }
    SYST_RVR = SYST_PERIOD - 1;
    SYST_CVR = 0;
    SYST_CSR = SYST_ON;
    for (int i = 0; i < SYST_PATIENCE && SYST_CVR == 0; i++) { /* it begins with its clock; in QEMU somewhat later */
    }
    debugger_counter = SYSTICK_CYCLES;
}

static uint64_t systick(void)
{
    uint32_t before, left, over;
    do {
        before = periods;
        left = SYST_CVR;
        over = (ICSR & ICSR_PENDSTSET) != 0; /* tick has not counted the last period yet */
        if (over)
            left = SYST_CVR;
    } while (before != periods);
    return (uint64_t)(before + over) * SYST_PERIOD + (SYST_PERIOD - 1 - left);
}

/* DWT's counter has 32 bits. It is read at each layer, and the difference is added. */
uint64_t board_instructions(void)
{
    static uint64_t total;
    static uint32_t last;
    if (debugger_counter == NOTHING)
        start();
    if (debugger_counter == SYSTICK_CYCLES)
        return systick();
    uint32_t now = DWT_CYCCNT;
    total += now - last;
    last = now;
    return total;
}

/* For fault.c. */
void console_write(const char *text, size_t bytes)
{
    board_write(1, text, bytes);
}
