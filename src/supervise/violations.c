#include "supervise/violations.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "supervise/keyed.h"
#include "trace/writer.h"

void sp_violations_init(struct sp_violations *v, enum sp_kind kind)
{
    *v = (struct sp_violations){.kind = kind};
    sp_buffer_init(&v->texts, SP_VIOLATIONS_BYTES);
}

void sp_violations_release(struct sp_violations *v)
{
    free(v->items);
    sp_buffer_release(&v->texts);
    *v = (struct sp_violations){0};
}

static struct sp_violation *find(struct sp_violations *v, uint64_t hash)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (v->items[i].hash == hash)
            return &v->items[i];
    return NULL;
}

/* Room for one more, NULL when there are as many as are kept. */
static struct sp_violation *grow(struct sp_violations *v)
{
    if (v->count == SP_VIOLATIONS_MAX)
        return NULL;
    if ((v->count & (v->count - 1)) == 0) {
        uint32_t room = v->count == 0 ? 8 : v->count * 2;
        if (v->count == 0 || v->count >= 8) {
            struct sp_violation *items = realloc(v->items, room * sizeof *items);
            if (items == NULL)
                return NULL;
            v->items = items;
        }
    }
    return &v->items[v->count];
}

bool sp_violations_add(struct sp_violations *v, struct sp_trace_writer *w,
                       enum sp_layer layer, uint64_t t_ns, int pid, int tid,
                       const struct sp_buffer *key, const struct sp_buffer *members)
{
    /* Two denials that collide would be counted as one: by chance, at 1,024 kept ones, they do not. */
    uint64_t hash = sp_keyed_hash(key->data, key->size);
    struct sp_violation *known = find(v, hash);
    v->total++;
    if (known != NULL) {
        known->count++;
        return false;
    }
    sp_trace_begin(w, v->kind, layer, t_ns, pid, tid);
    sp_trace_members(w, members->data, members->size);
    uint64_t seq = sp_trace_end(w);
    struct sp_violation *item = grow(v);
    if (item == NULL)
        return true;
    *item = (struct sp_violation){.hash = hash,
                                  .seq = seq,
                                  .count = 1,
                                  .told = 1,
                                  .pid = pid,
                                  .tid = tid,
                                  .layer = layer,
                                  .offset = v->texts.size,
                                  .size = members->size};
    sp_buffer_append(&v->texts, members->data, members->size);
    if (!v->texts.failed)
        v->count++;
    v->texts.failed = false;
    return true;
}

void sp_violations_tell_repeats(struct sp_violations *v, struct sp_trace_writer *w,
                                uint64_t t_ns)
{
    for (uint32_t i = 0; i < v->count; i++) {
        struct sp_violation *item = &v->items[i];
        if (item->count == item->told)
            continue;
        sp_trace_begin(w, v->kind, item->layer, t_ns, item->pid, item->tid);
        sp_trace_members(w, v->texts.data + item->offset, item->size);
        sp_trace_uint(w, "count", item->count - item->told);
        sp_trace_uint(w, "of", item->seq);
        sp_trace_end(w);
        item->told = item->count;
    }
}

void sp_violations_write(const struct sp_violations *v, struct sp_buffer *to)
{
    sp_buffer_text(to, "[");
    for (uint32_t i = 0; i < v->count; i++) {
        const struct sp_violation *item = &v->items[i];
        sp_buffer_text(to, i > 0 ? ",{" : "{");
        sp_json_key(to, "seq");
        sp_json_uint(to, item->seq);
        sp_json_key(to, "layer");
        sp_json_string(to, sp_layer_name(item->layer),
                       strlen(sp_layer_name(item->layer)));
        sp_json_key(to, "pid");
        sp_json_int(to, item->pid);
        sp_json_key(to, "count");
        sp_json_uint(to, item->count);
        sp_buffer_text(to, ",");
        sp_buffer_append(to, v->texts.data + item->offset, item->size);
        sp_buffer_text(to, "}");
    }
    sp_buffer_text(to, "]");
}
