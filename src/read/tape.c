#include "read/tape.h"

#include <string.h>

uint32_t sp_tape_find(const struct sp_tape *t, uint32_t object, const char *key)
{
    const struct sp_json_node *nodes = t->nodes;
    if (object >= t->count || nodes[object].type != SP_JSON_OBJECT)
        return 0;
    const size_t size = strlen(key);
    for (uint32_t i = object + 1; i < nodes[object].next; i = nodes[i + 1].next)
        if (nodes[i].size == size && memcmp(nodes[i].text, key, size) == 0)
            return i + 1;
    return 0;
}

const struct sp_json_node *sp_tape_text(const struct sp_tape *t, const char *key)
{
    const uint32_t i = sp_tape_find(t, 0, key);
    return i != 0 && t->nodes[i].type == SP_JSON_STRING ? &t->nodes[i] : NULL;
}

int64_t sp_tape_int(const struct sp_tape *t, const char *key, int64_t otherwise)
{
    const uint32_t i = sp_tape_find(t, 0, key);
    return i != 0 && t->nodes[i].type == SP_JSON_INT ? t->nodes[i].integer : otherwise;
}

bool sp_tape_true(const struct sp_tape *t, const char *key)
{
    const uint32_t i = sp_tape_find(t, 0, key);
    return i != 0 && t->nodes[i].type == SP_JSON_BOOL && t->nodes[i].boolean;
}

bool sp_node_is(const struct sp_json_node *node, const char *text)
{
    return node != NULL && node->size == strlen(text) &&
           memcmp(node->text, text, node->size) == 0;
}
