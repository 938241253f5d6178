#include "read/read_event.h"

#include <string.h>

#include "base/json.h"

int sp_read_kind_find(const char *name)
{
    return strcmp(name, "return") == 0 ? SP_READ_RETURN : sp_kind_find(name);
}

void sp_read_event_set(struct sp_read_event *e, const struct sp_head *head,
                       const char *line, size_t size, uint64_t line_number,
                       const struct sp_tape *tape)
{
    *e = (struct sp_read_event){
        .seq = head->seq,
        .t_ns = head->t_ns,
        .pid = head->pid,
        .tid = head->tid,
        .kind = head->kind,
        .kind_name = {head->kind_name, (uint32_t)head->kind_size},
        .layer = {head->layer_name, (uint32_t)head->layer_size},
        .line_number = line_number,
        .line = line,
        .line_size = size,
        .tape = tape,
    };
}

void sp_read_event_of_run(struct sp_read_event *e, const struct sp_run_view *run,
                          uint32_t i, const struct sp_functions *functions)
{
    const int32_t id = run->ids[i];
    e->seq += i;
    e->t_ns = run->t_ns[i];
    e->kind = id < 0 ? SP_READ_RETURN : SP_KIND_CALL;
    e->kind_name = id < 0 ? (struct sp_text){"return", 6} : (struct sp_text){"call", 4};
    e->tape = NULL;
    e->function_id = id < 0 ? -id : id;
    e->function = sp_functions_get(functions, (uint32_t)e->function_id);
    e->raised = run->flags[i] & SP_RUN_RAISED;
    e->resumed = run->flags[i] & SP_RUN_RESUMED;
}

/* Bytes at p that a terminal could take for more than text: DEL, C1 controls, line separators,
 * and what turns the direction of writing. Our own writer escapes the first three. */
static size_t harmful(const unsigned char *p, size_t left)
{
    if (p[0] == 0x7f)
        return 1;
    if (p[0] == 0xc2 && left >= 2 && p[1] < 0xa0)
        return 2;
    if (p[0] == 0xe2 && left >= 3 && p[1] == 0x80 && p[2] >= 0x8e && p[2] <= 0xae)
        return p[2] <= 0x8f || p[2] >= 0xa8 ? 3 : 0;
    if (p[0] == 0xe2 && left >= 3 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
        return 3;
    return 0;
}

static unsigned code_point(const unsigned char *p, size_t size)
{
    if (size == 1)
        return p[0];
    if (size == 2)
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    return (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

/* Such bytes stand in strings only, where an escape means the same. */
void sp_read_put_harmless(struct sp_buffer *to, const char *json, size_t json_size)
{
    const unsigned char *p = (const unsigned char *)json;
    size_t start = 0;
    for (size_t i = 0; i < json_size;) {
        const size_t size = p[i] < 0x7f ? 0 : harmful(p + i, json_size - i);
        if (size == 0) {
            i++;
            continue;
        }
        sp_buffer_append(to, json + start, i - start);
        sp_buffer_format(to, "\\u%04x", code_point(p + i, size));
        i += size;
        start = i;
    }
    sp_buffer_append(to, json + start, json_size - start);
}

static void put_text(struct sp_buffer *to, const char *key, struct sp_text text)
{
    sp_json_key(to, key);
    if (memchr(text.data, 0xe2, text.size) ==
        NULL) { /* the writer escapes the others */
        sp_json_string(to, text.data, text.size);
        return;
    }
    struct sp_buffer escaped;
    sp_buffer_init(&escaped, to->size_max);
    sp_json_string(&escaped, text.data, text.size);
    sp_read_put_harmless(to, escaped.data, escaped.size);
    to->failed = to->failed || escaped.failed;
    sp_buffer_release(&escaped);
}

static void put_function(struct sp_buffer *to, const struct sp_function *f)
{
    if (f == NULL)
        return;
    put_text(to, "function", f->name);
    if (f->module.size > 0)
        put_text(to, "module", f->module);
    if (f->file.size > 0)
        put_text(to, "file", f->file);
    if (f->line > 0) {
        sp_json_key(to, "line");
        sp_json_int(to, f->line);
    }
    if (f->native)
        sp_buffer_text(to, ",\"native\":true");
}

static void put_of_run(const struct sp_read_event *e, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    sp_json_key(to, "seq");
    sp_json_uint(to, e->seq);
    sp_json_key(to, "t");
    sp_json_uint(to, e->t_ns);
    put_text(to, "kind", e->kind_name);
    put_text(to, "layer", e->layer);
    sp_json_key(to, "pid");
    sp_json_int(to, e->pid);
    sp_json_key(to, "tid");
    sp_json_int(to, e->tid);
    sp_json_key(to, "id");
    sp_json_int(to, e->function_id);
    put_function(to, e->function);
    if (e->raised)
        sp_buffer_text(to, ",\"raised\":true");
    if (e->resumed)
        sp_buffer_text(to, ",\"resumed\":true");
    sp_buffer_text(to, "}\n");
}

void sp_read_event_json(const struct sp_read_event *e, struct sp_buffer *to)
{
    if (e->function_id != 0) {
        put_of_run(e, to);
    } else {
        sp_read_put_harmless(to, e->line, e->line_size);
        sp_buffer_append(to, "\n", 1);
    }
}
