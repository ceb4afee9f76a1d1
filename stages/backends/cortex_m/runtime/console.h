/* Text for the person who runs the simulator. */
#pragma once

#include <stddef.h>

void console_write(const char *text, size_t bytes);

/* Called before the program ends; does nothing unless stdio.c is linked. */
void console_flush(void);
