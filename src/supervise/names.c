/* Functions: from a lane's ids and its arena to the trace's ids and `function` events. */
#include <stdlib.h>
#include <string.h>

#include "supervise/lane_state.h"
#include "trace/writer.h"

#define IDS_FIRST 1024u

static void name_unknown(struct sp_name *name)
{
    name->line = 0;
    name->native = false;
    name->name_size = 1;
    name->name[0] = '?';
    name->module_size = 0;
    name->file_size = 0;
}

/* One text of a description; longer ones are cut, as the agent should have. */
static uint16_t text_copy(char *to, const uint8_t *from, uint16_t size)
{
    uint16_t kept = size > SP_TEXT_MAX ? SP_TEXT_MAX : size;
    sp_copy_out(to, from, kept);
    return kept;
}

bool sp_name_read(const struct sp_lane *lane, uint32_t id, struct sp_name *ret_name)
{
    struct sp_ring_function head;
    uint32_t at = 0;
    if (id > 0 && id < SP_FUNCTIONS_MAX)
        at = __atomic_load_n(&lane->ring->function_offsets[id], __ATOMIC_RELAXED);
    if (at == 0 || at > SP_ARENA_BYTES - sizeof head) {
        name_unknown(ret_name);
        return false;
    }
    const uint8_t *from = sp_lane_arena(lane) + at;
    sp_copy_out(&head, from, sizeof head);
    from += sizeof head;
    size_t left = SP_ARENA_BYTES - sizeof head - at;
    size_t size = (size_t)head.name_size + head.module_size + head.file_size;
    if (head.name_size == 0 || size > left) {
        name_unknown(ret_name);
        return false;
    }
    ret_name->line = head.line;
    ret_name->native = head.native != 0;
    ret_name->name_size = text_copy(ret_name->name, from, head.name_size);
    from += head.name_size;
    ret_name->module_size = text_copy(ret_name->module, from, head.module_size);
    from += head.module_size;
    ret_name->file_size = text_copy(ret_name->file, from, head.file_size);
    return true;
}

/* The cap is for all lanes together, so that a crowd of processes costs no more. */
static bool ids_grow(struct sp_lane *lane, uint32_t id)
{
    uint32_t want = lane->ids_size ? lane->ids_size : IDS_FIRST;
    while (want <= id)
        want *= 2;
    uint64_t more = (uint64_t)(want - lane->ids_size) * sizeof *lane->ids;
    if (lane->lanes->memory_bytes + more > lane->lanes->memory_max_bytes)
        return false;
    uint32_t *ids = realloc(lane->ids, want * sizeof *ids);
    if (!ids)
        return false;
    memset(ids + lane->ids_size, 0, (size_t)more);
    lane->lanes->memory_bytes += more;
    lane->ids = ids;
    lane->ids_size = want;
    return true;
}

static void function_write(struct sp_lane *lane, struct sp_trace_writer *w, uint32_t id,
                           uint32_t trace_id, uint64_t t_ns)
{
    struct sp_name name;
    if (!sp_name_read(lane, id, &name))
        sp_lane_flaw(lane, w, SP_FLAW_FUNCTION);
    sp_trace_begin(w, SP_KIND_FUNCTION, SP_LAYER_PYTHON, t_ns, lane->pid, lane->tid);
    sp_trace_uint(w, "id", trace_id);
    sp_trace_text(w, "name", name.name, name.name_size);
    if (name.module_size)
        sp_trace_text(w, "module", name.module, name.module_size);
    if (name.file_size)
        sp_trace_text(w, "file", name.file, name.file_size);
    if (name.line)
        sp_trace_uint(w, "line", name.line);
    sp_trace_bool(w, "native", name.native);
    sp_trace_end(w);
}

uint32_t sp_name_id(struct sp_lane *lane, struct sp_trace_writer *w, uint32_t id,
                    uint64_t t_ns)
{
    if (id < lane->ids_size && lane->ids[id] != 0)
        return lane->ids[id];
    if (id == 0 || id >= SP_FUNCTIONS_MAX) {
        sp_lane_flaw(lane, w, SP_FLAW_FUNCTION);
        return 0;
    }
    if ((id >= lane->ids_size && !ids_grow(lane, id)) ||
        lane->lanes->function_last == INT32_MAX) {
        lane->ids_lost++;
        return 0;
    }
    lane->ids[id] = ++lane->lanes->function_last;
    function_write(lane, w, id, lane->ids[id], t_ns);
    return lane->ids[id];
}

/* The child copies the arena after it got its lane, so every id that the trace knows by now
 * means the same function there. */
void sp_name_inherit(struct sp_lane *lane, const struct sp_lane *parent)
{
    uint32_t count = parent->ids_size;
    if (count == 0 || !ids_grow(lane, count - 1))
        return; /* its functions are told anew, as far as there is room */
    memcpy(lane->ids, parent->ids, count * sizeof *lane->ids);
}

void sp_name_release(struct sp_lane *lane)
{
    lane->lanes->memory_bytes -= (uint64_t)lane->ids_size * sizeof *lane->ids;
    free(lane->ids);
    lane->ids = NULL;
    lane->ids_size = 0;
}
