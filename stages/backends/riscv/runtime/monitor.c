/* Spike's monitor of devices with a separate time (stages/backends/riscv/spike/devices/monitor.cc), at BOARD_MONITOR. */
#include <stdint.h>

#include "board.h"

enum { LAYER, HOLD };

void board_layer(int layer)
{
    volatile uint32_t *monitor = (volatile uint32_t *)BOARD_MONITOR;

    board_instructions(); /* the devices' time is the time of the last reading */
    monitor[LAYER] = (uint32_t)layer;
    monitor[HOLD] = layer < 0;
}
