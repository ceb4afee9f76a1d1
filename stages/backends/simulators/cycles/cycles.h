/* Estimated cycles of a program: the table that stages/backends/timing/table.py makes of it, and the log of what was counted.
 *
 * For C and C++. The log has a record for each reading of the program's counter, as the program reads it.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Both in the simulator's current directory. */
#define CYCLES_TABLE "cycles.table"
#define CYCLES_LOG "cycles.bin"
#define CYCLES_COUNTS "executed.bin" /* if the table asks for it: how often each instruction ran */

#define CYCLES_MAGIC 0x59434c46u /* 'FLCY' */

enum { LEAST, ESTIMATE, MOST, CYCLES }; /* of a sum */
enum { UNTIMED = 1, JUMPS = 2, OPENS = 4, READS = 8, PREDICTED = 16 };
enum { FOLLOWED, ENTERED, TAKEN, MISSED, WAYS }; /* counts of an instruction: how often `struct timed`'s cycles counted */

/* Cycles of an instruction. follows: after the instruction before it in memory; entered: after any other; taken: extra cycles
 * if it jumps. */
struct timed {
    uint64_t address;
    uint8_t size, flags;
    uint16_t reserved;
    float follows[CYCLES], entered[CYCLES], taken[CYCLES];
    float missed; /* extra cycles if the branch is predicted wrong */
};

enum { WINDOWS = 4 }; /* of a flash: those that are unused have no bytes */

/* A memory that makes the core wait, in each window from `origin` up to `end`: stages/backends/targets/flash.py describes the
 * other fields. With `unified`, the cache of instructions has data too. */
struct flash {
    uint64_t origin[WINDOWS], end[WINDOWS];
    uint32_t least_wait_states, wait_states, line, prefetch, instruction_lines, data_lines, unified, ways;
};

/* At a reading of the counter: instructions, cycles, and the last instruction without cycles since the previous reading,
 * 0 for none. */
struct cycles_record {
    uint64_t instructions;
    double now[CYCLES];
    uint64_t untimed;
};

/* Instructions by half of their address, from `first` on; NULL where there is none. `counts` is NULL if nobody asked. */
struct cycles_table {
    struct flash flash;
    const struct timed **at, *all;
    uint64_t first, halves, entries;
    uint8_t *predictions; /* of each instruction: a counter of two bits, from 2 on the branch is predicted to jump */
    uint64_t (*counts)[WAYS];
};

/* The lines of a cache, 0 for none: sets of `ways` lines, in each the one used last first. */
struct cycles_cache {
    uint64_t *lines;
    uint32_t sets, ways;
};

/* The buffer between core and flash: the current line of instructions, and its time; 0 for none. */
struct cycles_waits {
    const struct flash *flash;
    struct cycles_cache instructions, data;
    uint64_t line;
    double since;
};

static inline void cycles_fail(const char *what, const char *file)
{
    fprintf(stderr, "estimated cycles: %s %s\n", what, file);
    exit(EXIT_FAILURE);
}

static inline struct cycles_table cycles_load(const char *file)
{
    uint32_t header[4] = {0, 0, 0, 0}; /* magic, entries, whether to count, 0 */
    FILE *in = fopen(file, "rb");
    if (in == NULL || fread(header, sizeof header, 1, in) != 1 || header[0] != CYCLES_MAGIC || header[1] == 0)
        cycles_fail("no table in", file);
    struct cycles_table table;
    struct timed *all = (struct timed *)malloc(header[1] * sizeof *all);
    if (all == NULL || fread(&table.flash, sizeof table.flash, 1, in) != 1 ||
        fread(all, sizeof *all, header[1], in) != header[1])
        cycles_fail("cannot read", file);
    fclose(in);

    table.all = all;
    table.entries = header[1];
    table.counts = NULL;
    table.predictions = (uint8_t *)calloc(header[1], 1);
    if (header[2])
        table.counts = (uint64_t(*)[WAYS])calloc(header[1], sizeof *table.counts);
    table.first = all[0].address;
    table.halves = (all[header[1] - 1].address - table.first) / 2 + 1;
    table.at = (const struct timed **)calloc(table.halves, sizeof *table.at);
    if (table.at == NULL || table.predictions == NULL || (header[2] && table.counts == NULL))
        cycles_fail("no memory for", file);
    for (uint32_t i = 0; i < header[1]; i++)
        table.at[(all[i].address - table.first) / 2] = &all[i];
    return table;
}

static inline const struct timed *cycles_of(const struct cycles_table *table, uint64_t address)
{
    uint64_t half = (address - table->first) / 2; /* wraps below `first`, which is beyond the last */
    return half < table->halves ? table->at[half] : NULL;
}

/* Counts an instruction of the table. */
static inline void cycles_count(const struct cycles_table *table, const struct timed *one, int way, int more)
{
    if (table->counts != NULL && one >= table->all && one < table->all + table->entries)
        table->counts[one - table->all][way] += (uint64_t)(int64_t)more;
}

/* Predicts a branch that then jumped or not, and adds the cycles of a wrong prediction. */
static inline void cycles_predict(const struct cycles_table *table, const struct timed *one, int has_jumped,
                                  double now[CYCLES])
{
    if (!(one->flags & PREDICTED))
        return;
    uint8_t *counter = &table->predictions[one - table->all];
    int is_wrong = (*counter >= 2) != has_jumped;
    if (has_jumped && *counter < 3)
        ++*counter;
    if (!has_jumped && *counter > 0)
        --*counter;
    cycles_count(table, one, MISSED, is_wrong);
    for (int i = 0; i < CYCLES; i++)
        now[i] += is_wrong ? one->missed : 0;
}

/* Appends the counts up to now, if they are asked for: {number of the instruction, counts} of each that ran, and {-1}. */
static inline void cycles_write_counts(const struct cycles_table *table, FILE *out)
{
    if (table->counts == NULL)
        return;
    for (uint64_t i = 0; i <= table->entries; i++) {
        uint64_t record[1 + WAYS] = {UINT64_MAX, 0, 0, 0, 0}, ran = i == table->entries;
        for (int way = 0; way < WAYS && i < table->entries; way++)
            ran |= record[1 + way] = table->counts[i][way];
        record[0] = i < table->entries ? i : UINT64_MAX;
        if (ran && fwrite(record, sizeof record, 1, out) != 1)
            cycles_fail("cannot write", CYCLES_COUNTS);
    }
}

static inline struct cycles_cache cycles_cache_of(uint32_t lines, uint32_t ways)
{
    ways = ways > 0 && ways < lines ? ways : lines;
    struct cycles_cache cache = {(uint64_t *)calloc(lines + 1, sizeof(uint64_t)), lines > 0 ? lines / ways : 0, ways};
    if (cache.lines == NULL)
        cycles_fail("no memory for", "caches");
    return cache;
}

static inline struct cycles_waits cycles_waits_of(const struct flash *flash)
{
    struct cycles_cache instructions = cycles_cache_of(flash->instruction_lines, flash->ways);
    struct cycles_cache data = flash->unified ? instructions : cycles_cache_of(flash->data_lines, flash->ways);
    struct cycles_waits waits = {flash, instructions, data, 0, 0.0};
    return waits;
}

/* Whether the cache has a line. Afterwards it has. */
static inline int cycles_cached(struct cycles_cache *cache, uint64_t line)
{
    if (cache->sets == 0)
        return 0;
    uint64_t *set = cache->lines + line % cache->sets * cache->ways;
    uint32_t at = 0;
    while (at < cache->ways - 1 && set[at] != line)
        at++;
    int is_there = set[at] == line; /* otherwise the least recently used one goes */
    for (; at > 0; at--)
        set[at] = set[at - 1];
    set[0] = line;
    return is_there;
}

/* The number of an address's line, from 1 on; 0 outside of the flash. */
static inline uint64_t cycles_line(const struct flash *flash, uint64_t address)
{
    for (int i = 0; i < WINDOWS; i++)
        if (address >= flash->origin[i] && address < flash->end[i])
            return address / flash->line + 1;
    return 0;
}

/* Cycles for which the core waits before it has an instruction of this line, at time `now`. */
static inline double cycles_fetch(struct cycles_waits *waits, uint64_t line, double now)
{
    const struct flash *flash = waits->flash;
    if (line == waits->line)
        return 0;
    double wait = 0, read_for = now - waits->since;
    if (line != 0 && !cycles_cached(&waits->instructions, line)) {
        wait = flash->wait_states;
        if (flash->prefetch && waits->line != 0 && line == waits->line + 1)
            wait = read_for < wait ? wait - read_for : 0;
    }
    waits->line = line;
    waits->since = now + wait;
    return wait;
}

/* Cycles for which the core waits for data at an address. */
static inline uint64_t cycles_load_waits(struct cycles_waits *waits, uint64_t address)
{
    uint64_t line = cycles_line(waits->flash, address);
    return line == 0 || cycles_cached(&waits->data, line) ? 0 : waits->flash->wait_states;
}

/* Adds cycles that the core waits; fewer than 0 take them back. If the wait states are a range, `wait` is a multiple of the
 * most: only MOST has it, the others the same multiple of the least. */
static inline void cycles_wait(const struct flash *flash, double now[CYCLES], double wait)
{
    if (wait == 0)
        return;
    double least = wait * flash->least_wait_states / flash->wait_states;
    for (int i = 0; i < CYCLES; i++)
        now[i] += i == MOST ? wait : least;
}

static inline void cycles_add(double now[CYCLES], const float more[CYCLES])
{
    for (int i = 0; i < CYCLES; i++)
        now[i] += more[i];
}
