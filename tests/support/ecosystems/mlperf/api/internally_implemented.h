#pragma once
#include <stddef.h>
#include <stdint.h>

void ee_serial_command_parser_callback(char *command);
size_t ee_get_buffer(uint8_t *buffer, size_t most);
uint8_t *ee_get_buffer_pointer();
