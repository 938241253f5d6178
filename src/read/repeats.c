#include "read/repeats.h"

#include <string.h>

#define FEW   24u /* members, whose names are compared one by one */
#define SLOTS (2 * SP_MEMBERS_MAX)

static bool same(const struct sp_json_node *a, const struct sp_json_node *b)
{
    return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

/* One of 64 bits; equal names have the same. */
static uint64_t bit_of(const struct sp_json_node *name)
{
    const uint32_t size = name->size;
    const unsigned char *text = (const unsigned char *)name->text;
    const uint32_t mixed =
        size == 0 ? 0
                  : size + text[0] * 7u + text[size / 2] * 13u + text[size - 1] * 31u;
    return UINT64_C(1) << (mixed & 63);
}

/* Names are told apart by a bit each; those that share one are compared. */
static bool find_in_few(const struct sp_json_node *nodes, uint32_t object,
                        uint32_t *ret_node)
{
    uint64_t seen = 0;
    for (uint32_t at = object + 1; at < nodes[object].next; at = nodes[at + 1].next) {
        const uint64_t bit = bit_of(&nodes[at]);
        if (seen & bit)
            for (uint32_t i = object + 1; i < at; i = nodes[i + 1].next)
                if (same(&nodes[i], &nodes[at])) {
                    *ret_node = at;
                    return true;
                }
        seen |= bit;
    }
    return false;
}

static uint32_t hash_of(const struct sp_json_node *name)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < name->size; i++)
        h = (h ^ (unsigned char)name->text[i]) * 16777619u;
    return h;
}

static bool find_in_many(const struct sp_json_node *nodes, uint32_t object,
                         uint32_t *ret_node)
{
    uint32_t slots[SLOTS];
    memset(slots, 0, sizeof slots);
    for (uint32_t at = object + 1; at < nodes[object].next; at = nodes[at + 1].next) {
        uint32_t slot = hash_of(&nodes[at]) % SLOTS;
        for (; slots[slot] != 0; slot = (slot + 1) % SLOTS)
            if (same(&nodes[slots[slot]], &nodes[at])) {
                *ret_node = at;
                return true;
            }
        slots[slot] = at;
    }
    return false;
}

enum sp_repeats sp_repeats_find(const struct sp_tape *tape, uint32_t *ret_node)
{
    const struct sp_json_node *nodes = tape->nodes;
    for (uint32_t i = 0; i < tape->count; i++) {
        if (nodes[i].type != SP_JSON_OBJECT || nodes[i].size < 2)
            continue;
        if (nodes[i].size > SP_MEMBERS_MAX) {
            *ret_node = i;
            return SP_REPEATS_TOO_MUCH;
        }
        if (nodes[i].size <= FEW ? find_in_few(nodes, i, ret_node)
                                 : find_in_many(nodes, i, ret_node))
            return SP_REPEATS_FOUND;
    }
    return SP_REPEATS_NONE;
}
