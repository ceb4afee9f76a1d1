/* Measures the stack: fills the memory below it with a pattern before main runs, and later looks for the lowest changed word.
 * If more than PAINTED_BYTES are used, PAINTED_BYTES is reported.
 */
#include <stdint.h>

#include "board.h"

enum { PAINTED_BYTES = 256 * 1024 };
#define STACK_PAINT 0xa5a5a5a5a5a5a5a5u

static volatile uint64_t *top, *bottom;

/* Runs in main's caller, a little below the frames of the C library's start-up. The pattern is volatile, so that memset is not called: its
 * frame would be in the pattern.
 */
__attribute__((constructor)) static void paint(void)
{
    top = __builtin_frame_address(0);
    bottom = top - PAINTED_BYTES / sizeof *top;
    for (volatile uint64_t *word = top - 16; word >= bottom; word--)
        *word = STACK_PAINT;
}

uint32_t board_stack_used(void)
{
    const volatile uint64_t *word = bottom;
    while (word < top && *word == STACK_PAINT)
        word++;
    return (uint32_t)((uintptr_t)top - (uintptr_t)word);
}
