/* What can happen in a run: kinds, layers and the field keys the agent may use. One list
 * each; names, enums and the documents come from it. */
#ifndef SP_EVENT_EVENT_H
#define SP_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum sp_kind {
#define SP_KIND(name, text, from_ring) SP_KIND_##name,
#include "event/kinds.def"
#undef SP_KIND
    SP_KIND_COUNT
};

/* Where an event was seen. */
enum sp_layer {
    SP_LAYER_KERNEL,
    SP_LAYER_PYTHON,
    SP_LAYER_SUPERVISOR,
};

enum sp_field {
    SP_FIELD_NONE,
#define SP_FIELD(name, key, type) SP_FIELD_##name,
#include "event/fields.def"
#undef SP_FIELD
    SP_FIELD_COUNT
};

enum sp_field_type {
    SP_TYPE_TEXT,
    SP_TYPE_INT,
    SP_TYPE_BOOL,
};

const char *sp_kind_name(enum sp_kind kind); /* "import"; SP_BUG on a bad kind */
int sp_kind_find(const char *name);          /* the kind, or -1 */
bool sp_kind_from_ring(unsigned kind);       /* false for out-of-range numbers too */
const char *sp_layer_name(enum sp_layer layer);
const char *sp_field_key(unsigned field);         /* NULL for out-of-range numbers */
enum sp_field_type sp_field_type(unsigned field); /* field must be valid */

#endif
