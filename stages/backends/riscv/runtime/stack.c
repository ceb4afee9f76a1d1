/* Measurement of the stack. */
#include <stdint.h>

#include "board.h"

#define STACK_PAINT 0xa5a5a5a5u /* as crt.S paints it */
extern uint32_t __stack_bottom[], __stack_top[];

uint32_t board_stack_used(void)
{
    const volatile uint32_t *word = __stack_bottom;
    while (word < __stack_top && *word == STACK_PAINT)
        word++;
    return (uint32_t)((uintptr_t)__stack_top - (uintptr_t)word);
}
