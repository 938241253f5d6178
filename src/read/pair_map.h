/* Values by two numbers, as threads by process and thread. Bounded by whoever adds. */
#ifndef SP_READ_PAIR_MAP_H
#define SP_READ_PAIR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_pair_slot {
    int64_t first;
    int64_t second;
    void *value; /* borrowed; NULL: a free slot */
};

struct sp_pair_map {
    struct sp_pair_slot *slots; /* owned; a power of two of them, or none */
    size_t slots_count;
    size_t count;
    uint64_t seed;
};

/* A hash of two numbers: they lie close together, or were chosen by who made the trace, who cannot
 * know the seed. */
uint64_t sp_pair_seed(
    const void *place); /* `place`: where the kernel has none to give */
uint64_t sp_pair_hash(uint64_t seed, int64_t first, int64_t second);

void sp_pair_map_init(struct sp_pair_map *m);
void sp_pair_map_release(struct sp_pair_map *m); /* not what the values point to */

void *sp_pair_map_get(const struct sp_pair_map *m, int64_t first,
                      int64_t second); /* NULL: none */

/* Of a pair that has no value yet; `value` is not NULL. False: no memory. */
bool sp_pair_map_add(struct sp_pair_map *m, int64_t first, int64_t second, void *value);
void sp_pair_map_remove(struct sp_pair_map *m, int64_t first, int64_t second);

#endif
