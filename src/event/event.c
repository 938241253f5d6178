#include "event/event.h"

#include <string.h>

#include "base/error.h"

static const char *const kind_names[] = {
#define SP_KIND(name, text, from_ring) text,
#include "event/kinds.def"
#undef SP_KIND
};

static const bool kind_from_ring[] = {
#define SP_KIND(name, text, from_ring) from_ring,
#include "event/kinds.def"
#undef SP_KIND
};

static const struct {
    const char *key;
    enum sp_field_type type;
} fields[] = {
    {0},
#define SP_FIELD(name, key, type) {key, SP_TYPE_##type},
#include "event/fields.def"
#undef SP_FIELD
};

const char *sp_kind_name(enum sp_kind kind)
{
    SP_BUG_ON((unsigned)kind >= SP_KIND_COUNT);
    return kind_names[kind];
}

int sp_kind_find(const char *name)
{
    for (int i = 0; i < SP_KIND_COUNT; i++)
        if (strcmp(kind_names[i], name) == 0)
            return i;
    return -1;
}

bool sp_kind_from_ring(unsigned kind)
{
    return kind < SP_KIND_COUNT && kind_from_ring[kind];
}

const char *sp_layer_name(enum sp_layer layer)
{
    static const char *const names[] = {"kernel", "python", "supervisor"};
    SP_BUG_ON((unsigned)layer > SP_LAYER_SUPERVISOR);
    return names[layer];
}

const char *sp_field_key(unsigned field)
{
    return field > 0 && field < SP_FIELD_COUNT ? fields[field].key : NULL;
}

enum sp_field_type sp_field_type(unsigned field)
{
    SP_BUG_ON(field == 0 || field >= SP_FIELD_COUNT);
    return fields[field].type;
}
