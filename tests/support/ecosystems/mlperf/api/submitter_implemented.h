#pragma once
#include <stdarg.h>
#include <stddef.h>

#define EE_MSG_TIMESTAMP "m-lap-us-%lu\r\n"
#define EE_MSG_TIMESTAMP_MODE "m-timestamp-mode-performance\r\n"
#define EE_CFG_ENERGY_MODE 0

void th_load_tensor();
void th_results();
void th_infer();
void th_timestamp(void);
void th_printf(const char *format, ...);
char th_getchar();
void th_serialport_initialize(void);
void th_timestamp_initialize(void);
void th_final_initialize(void);
void th_pre();
void th_post();
void th_command_ready(char volatile *command);
int th_strncmp(const char *a, const char *b, size_t n);
char *th_strncpy(char *to, const char *from, size_t n);
size_t th_strnlen(const char *text, size_t most);
char *th_strcat(char *to, const char *from);
char *th_strtok(char *text, const char *separators);
int th_atoi(const char *text);
void *th_memset(void *to, int value, size_t n);
void *th_memcpy(void *to, const void *from, size_t n);
int th_vprintf(const char *format, va_list arguments);
