/* What a sketch sees of Arduino, on the console of a simulator. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct Console {
    void begin(unsigned long) {}
    operator bool() const { return true; }
    void print(const char *text) { printf("%s", text); }
    void println(const char *text) { printf("%s\n", text); }
    void println(unsigned number) { printf("%u\n", number); }
    void println(unsigned long number) { printf("%lu\n", number); }
};
static Console Serial;
static unsigned long micros() { static unsigned long now; return now++; }
void setup();
void loop();
int main()
{
    setup();
    loop();
    return 0;
}
