#include "read/ocsf_objects.h"

#include <string.h>

#include "base/json.h"

#define OCSF_VERSION "1.6.0"

void sp_ocsf_put_text(struct sp_buffer *b, const char *key, struct sp_text text)
{
    sp_json_key(b, key);
    sp_export_string(b, text.data, text.size);
}

void sp_ocsf_put_ours(struct sp_buffer *b, const char *key, const char *text)
{
    sp_ocsf_put_text(b, key, (struct sp_text){text, (uint32_t)strlen(text)});
}

void sp_ocsf_put_int(struct sp_buffer *b, const char *key, int64_t value)
{
    sp_json_key(b, key);
    sp_json_int(b, value);
}

static uint64_t milliseconds(const struct sp_ocsf *s, const struct sp_read_event *e)
{
    return s->time_ns / 1000000 + e->t_ns / 1000000;
}

/* Classes of the network have an actor and a device only by the profile of hosts. */
static void put_metadata(struct sp_ocsf *s, const struct sp_read_event *e,
                         const struct sp_ocsf_act *act)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"metadata\":{\"version\":\"" OCSF_VERSION
                      "\",\"product\":{\"name\":\"sandpit\",\"vendor_name\":"
                      "\"sandpit\",\"version\":\"" SP_VERSION "\"}");
    sp_json_key(b, "sequence");
    sp_json_uint(b, e->seq);
    sp_ocsf_put_text(b, "event_code", e->kind_name);
    sp_ocsf_put_ours(b, "log_name", s->c->name);
    if (act->class_uid == SP_OCSF_NETWORK || act->class_uid == SP_OCSF_DNS)
        sp_buffer_text(b, ",\"profiles\":[\"host\"]");
    sp_buffer_text(b, "}");
}

/* The trace does not say what its machine is called. */
void sp_ocsf_put_device(struct sp_ocsf *s)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"device\":{\"type_id\":0,\"name\":\"localhost\",\"os\":"
                      "{\"name\":\"Linux\",\"type_id\":200");
    if (s->kernel_size > 0)
        sp_ocsf_put_text(b, "kernel_release",
                         (struct sp_text){s->kernel, s->kernel_size});
    sp_buffer_text(b, "}}");
}

void sp_ocsf_put_process(struct sp_ocsf *s, const char *key, int64_t pid, int64_t tid)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_ocsf_name *name = sp_pair_map_get(&s->processes, pid, 0);
    sp_json_key(b, key);
    sp_buffer_text(b, "{");
    sp_ocsf_put_int(b, "pid", pid);
    if (tid != 0)
        sp_ocsf_put_int(b, "tid", tid);
    if (name != NULL && name->size > 0)
        sp_ocsf_put_text(b, "name", (struct sp_text){name->text, name->size});
}

void sp_ocsf_put_actor(struct sp_ocsf *s, int64_t pid, int64_t tid)
{
    sp_buffer_text(&s->c->out, ",\"actor\":{");
    sp_ocsf_put_process(s, "process", pid, tid);
    sp_buffer_text(&s->c->out, "}}");
}

/* What stands elsewhere in the event. */
static bool is_mapped(const struct sp_json_node *name)
{
    static const char *const mapped[] = {
        "path",  "to",   "argv",    "address", "addresses", "port",   "host",
        "errno", "code", "message", "hint",    "target",    "library"};
    for (size_t i = 0; i < sizeof mapped / sizeof *mapped; i++)
        if (sp_node_is(name, mapped[i]))
            return true;
    return sp_export_is_head(name);
}

void sp_ocsf_put_unmapped(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_json_node *nodes = e->tape->nodes;
    sp_buffer_text(b, ",\"unmapped\":{");
    sp_ocsf_put_text(b, "layer", e->layer);
    for (uint32_t at = 1; at < nodes[0].next; at = nodes[at + 1].next) {
        if (is_mapped(&nodes[at]) || !sp_export_takes(e->tape, 0, at))
            continue;
        sp_buffer_append(b, ",", 1);
        sp_export_string(b, nodes[at].text, nodes[at].size);
        sp_buffer_append(b, ":", 1);
        sp_export_value(b, e->tape, at + 1);
    }
    sp_buffer_text(b, "}");
}

void sp_ocsf_put_head(struct sp_ocsf *s, const struct sp_read_event *e,
                      const struct sp_ocsf_act *act)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, "{");
    sp_ocsf_put_int(b, "class_uid", act->class_uid);
    sp_ocsf_put_ours(b, "class_name", sp_ocsf_class_name(act->class_uid));
    sp_ocsf_put_int(b, "category_uid", act->class_uid / 1000);
    sp_ocsf_put_ours(b, "category_name", sp_ocsf_category_name(act->class_uid));
    sp_ocsf_put_int(b, "activity_id", act->activity_id);
    sp_ocsf_put_ours(b, "activity_name", act->activity_name);
    sp_ocsf_put_int(b, "type_uid", act->class_uid * 100 + act->activity_id);
    sp_ocsf_put_int(b, "severity_id", act->severity_id);
    sp_ocsf_put_ours(b, "severity", sp_ocsf_severity_name(act->severity_id));
    sp_json_key(b, "time");
    sp_json_uint(b, milliseconds(s, e));
    const struct sp_text message = sp_export_text_of(e, "message");
    if (message.size > 0) {
        sp_ocsf_put_text(b, "message", message);
    } else {
        sp_export_title(&s->c->text, e);
        sp_ocsf_put_text(b, "message",
                         (struct sp_text){s->c->text.data, (uint32_t)s->c->text.size});
        sp_buffer_clear(&s->c->text);
    }
    put_metadata(s, e, act);
}

void sp_ocsf_put_status(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const int64_t err = sp_tape_int(e->tape, "errno", 0);
    if (err != 0)
        sp_buffer_format(b,
                         ",\"status_id\":2,\"status\":\"Failure\",\"status_code\":"
                         "\"%lld\"",
                         (long long)err);
}
