#include "read/pair_map.h"

#include <stdlib.h>
#include <sys/random.h>

#define SLOTS_FIRST 64u

uint64_t sp_pair_seed(const void *place)
{
    uint64_t seed;
    return getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed
               ? seed
               : (uint64_t)(uintptr_t)place;
}

static uint64_t mixed(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    return h * UINT64_C(0xd6e8feb86659fd93);
}

uint64_t sp_pair_hash(uint64_t seed, int64_t first, int64_t second)
{
    uint64_t h = mixed(mixed((uint64_t)first ^ seed) ^ (uint64_t)second);
    return h ^ h >> 32;
}

void sp_pair_map_init(struct sp_pair_map *m)
{
    *m = (struct sp_pair_map){.seed = sp_pair_seed(m)};
}

void sp_pair_map_release(struct sp_pair_map *m)
{
    free(m->slots);
    *m = (struct sp_pair_map){0};
}

static size_t home(const struct sp_pair_map *m, int64_t first, int64_t second)
{
    return (size_t)sp_pair_hash(m->seed, first, second) & (m->slots_count - 1);
}

/* The slot that has the pair, or the free one where it would go. */
static size_t find(const struct sp_pair_map *m, int64_t first, int64_t second)
{
    size_t i = home(m, first, second);
    while (m->slots[i].value != NULL &&
           (m->slots[i].first != first || m->slots[i].second != second))
        i = (i + 1) & (m->slots_count - 1);
    return i;
}

void *sp_pair_map_get(const struct sp_pair_map *m, int64_t first, int64_t second)
{
    return m->count == 0 ? NULL : m->slots[find(m, first, second)].value;
}

static bool grow(struct sp_pair_map *m)
{
    struct sp_pair_map larger = {
        .slots_count = m->slots_count == 0 ? SLOTS_FIRST : m->slots_count * 2,
        .count = m->count,
        .seed = m->seed,
    };
    larger.slots = calloc(larger.slots_count, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < m->slots_count; i++) {
        const struct sp_pair_slot *slot = &m->slots[i];
        if (slot->value != NULL)
            larger.slots[find(&larger, slot->first, slot->second)] = *slot;
    }
    free(m->slots);
    *m = larger;
    return true;
}

bool sp_pair_map_add(struct sp_pair_map *m, int64_t first, int64_t second, void *value)
{
    if ((m->count + 1) * 2 > m->slots_count && !grow(m))
        return false;
    m->slots[find(m, first, second)] = (struct sp_pair_slot){first, second, value};
    m->count++;
    return true;
}

/* What stands behind a slot that becomes free moves up, so that no search ends there early. */
void sp_pair_map_remove(struct sp_pair_map *m, int64_t first, int64_t second)
{
    if (m->count == 0)
        return;
    const size_t mask = m->slots_count - 1;
    size_t gap = find(m, first, second);
    if (m->slots[gap].value == NULL)
        return;
    m->count--;
    for (size_t i = (gap + 1) & mask; m->slots[i].value != NULL; i = (i + 1) & mask) {
        const size_t at = home(m, m->slots[i].first, m->slots[i].second);
        if (((i - at) & mask) < ((i - gap) & mask))
            continue; /* its home lies behind the gap */
        m->slots[gap] = m->slots[i];
        gap = i;
    }
    m->slots[gap] = (struct sp_pair_slot){0};
}
