/* Events of the Open Cybersecurity Schema Framework, version 1.6.0, one a line: what the program
 * did to files, processes and the network, and what it was denied.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/export_format.h"
#include "read/export_ocsf.h"
#include "read/pair_map.h"

#define OCSF_VERSION  "1.6.0"
#define PROCESSES_MAX 32768u /* alive at once whose names are kept */
#define NAME_MAX_SIZE 256u

/* ---- what all events have ---------------------------------------------------------------- */

struct process_name {
    uint32_t size;
    char text[NAME_MAX_SIZE];
};

struct ocsf {
    struct sp_export_context *c;  /* borrowed */
    struct sp_pair_map processes; /* names, owned, by process and 0 */
    uint64_t time_ns;             /* of the start, since 1970 */
    char kernel[64];
    uint32_t kernel_size;
};

static void put_text(struct sp_buffer *b, const char *key, struct sp_text text)
{
    sp_json_key(b, key);
    sp_export_string(b, text.data, text.size);
}

static void put_ours(struct sp_buffer *b, const char *key, const char *text)
{
    put_text(b, key, (struct sp_text){text, (uint32_t)strlen(text)});
}

static void put_int(struct sp_buffer *b, const char *key, int64_t value)
{
    sp_json_key(b, key);
    sp_json_int(b, value);
}

static uint64_t milliseconds(const struct ocsf *s, const struct sp_read_event *e)
{
    return s->time_ns / 1000000 + e->t_ns / 1000000;
}

static void put_metadata(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"metadata\":{\"version\":\"" OCSF_VERSION
                      "\",\"product\":{\"name\":\"sandpit\",\"vendor_name\":"
                      "\"sandpit\",\"version\":\"" SP_VERSION "\"}");
    sp_json_key(b, "sequence");
    sp_json_uint(b, e->seq);
    put_text(b, "event_code", e->kind_name);
    put_ours(b, "log_name", s->c->name);
    sp_buffer_text(b, "}");
}

/* The trace does not say what its machine is called. */
static void put_device(struct ocsf *s)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"device\":{\"type_id\":0,\"name\":\"localhost\",\"os\":"
                      "{\"name\":\"Linux\",\"type_id\":200");
    if (s->kernel_size > 0)
        put_text(b, "kernel_release", (struct sp_text){s->kernel, s->kernel_size});
    sp_buffer_text(b, "}}");
}

static void put_process(struct ocsf *s, const char *key, int64_t pid, int64_t tid)
{
    struct sp_buffer *b = &s->c->out;
    const struct process_name *name = sp_pair_map_get(&s->processes, pid, 0);
    sp_json_key(b, key);
    sp_buffer_text(b, "{");
    put_int(b, "pid", pid);
    if (tid != 0)
        put_int(b, "tid", tid);
    if (name != NULL && name->size > 0)
        put_text(b, "name", (struct sp_text){name->text, name->size});
}

static void put_actor(struct ocsf *s, int64_t pid, int64_t tid)
{
    sp_buffer_text(&s->c->out, ",\"actor\":{");
    put_process(s, "process", pid, tid);
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

static void put_unmapped(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_json_node *nodes = e->tape->nodes;
    sp_buffer_text(b, ",\"unmapped\":{");
    put_text(b, "layer", e->layer);
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

/* Begins an event: class, activity, how bad it is, when, and in a few words what. */
static void put_head(struct ocsf *s, const struct sp_read_event *e,
                     const struct sp_ocsf_act *act)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, "{");
    put_int(b, "class_uid", act->class_uid);
    put_ours(b, "class_name", sp_ocsf_class_name(act->class_uid));
    put_int(b, "category_uid", act->class_uid / 1000);
    put_ours(b, "category_name", sp_ocsf_category_name(act->class_uid));
    put_int(b, "activity_id", act->activity_id);
    put_ours(b, "activity_name", act->activity_name);
    put_int(b, "type_uid", act->class_uid * 100 + act->activity_id);
    put_int(b, "severity_id", act->severity_id);
    put_ours(b, "severity", sp_ocsf_severity_name(act->severity_id));
    sp_json_key(b, "time");
    sp_json_uint(b, milliseconds(s, e));
    const struct sp_text message = sp_export_text_of(e, "message");
    if (message.size > 0) {
        put_text(b, "message", message);
    } else {
        sp_export_title(&s->c->text, e);
        put_text(b, "message",
                 (struct sp_text){s->c->text.data, (uint32_t)s->c->text.size});
        sp_buffer_clear(&s->c->text);
    }
    put_metadata(s, e);
}

/* Whether it worked, where the trace says so. */
static void put_status(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const int64_t err = sp_tape_int(e->tape, "errno", 0);
    if (err != 0)
        sp_buffer_format(b,
                         ",\"status_id\":2,\"status\":\"Failure\",\"status_code\":"
                         "\"%lld\"",
                         (long long)err);
}

/* ---- files -------------------------------------------------------------------------------- */

static void put_file(struct sp_buffer *b, const char *key, struct sp_text path,
                     int64_t type)
{
    sp_json_key(b, key);
    sp_buffer_text(b, "{");
    put_text(b, "name", sp_export_basename(path));
    put_text(b, "path", path);
    put_int(b, "type_id", type);
    sp_buffer_text(b, "}");
}

static void add_file(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text to = sp_export_text_of(e, "to");
    put_file(b, "file", sp_export_text_of(e, "path"), sp_ocsf_file_type(e));
    if (to.size > 0)
        put_file(b, "file_result", to, sp_ocsf_file_type(e));
    put_actor(s, e->pid, e->tid);
    put_device(s);
    put_status(s, e);
}

static void add_module(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"module\":{\"load_type_id\":1");
    put_file(b, "file", sp_export_text_of(e, "library"), 1);
    sp_buffer_text(b, "}");
    put_actor(s, e->pid, e->tid);
    put_device(s);
}

/* ---- processes ---------------------------------------------------------------------------- */

static void name_process(struct ocsf *s, int64_t pid, struct sp_text path)
{
    const struct sp_text name = sp_export_basename(path);
    struct process_name *p = sp_pair_map_get(&s->processes, pid, 0);
    if (p == NULL) {
        p = s->processes.count < PROCESSES_MAX ? calloc(1, sizeof *p) : NULL;
        if (p == NULL)
            return;
        if (!sp_pair_map_add(&s->processes, pid, 0, p)) {
            free(p);
            return;
        }
    }
    p->size = name.size < NAME_MAX_SIZE
                  ? name.size
                  : (uint32_t)sp_json_whole(name.data, NAME_MAX_SIZE);
    memcpy(p->text, name.data, p->size);
}

static void forget_process(struct ocsf *s, int64_t pid)
{
    free(sp_pair_map_get(&s->processes, pid, 0));
    sp_pair_map_remove(&s->processes, pid, 0);
}

static void put_command(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    sp_export_joined(&s->c->text, e->tape, "argv");
    sp_json_key(b, "cmd_line");
    sp_export_string(b, s->c->text.data, s->c->text.size);
    sp_buffer_clear(&s->c->text);
}

/* The interpreter that a run starts with. */
static struct sp_text interpreter(const struct sp_read_event *e)
{
    const uint32_t at = sp_tape_find(e->tape, 0, "interpreter");
    const uint32_t path = at == 0 ? 0 : sp_tape_find(e->tape, at, "path");
    const struct sp_json_node *node = &e->tape->nodes[path];
    return path != 0 && node->type == SP_JSON_STRING
               ? (struct sp_text){node->text, node->size}
               : (struct sp_text){"", 0};
}

static void add_process(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    if (e->kind == SP_KIND_FORK) {
        const int64_t parent = sp_tape_int(e->tape, "parent", 0);
        const struct process_name *name = sp_pair_map_get(&s->processes, parent, 0);
        if (name != NULL)
            name_process(s, e->pid, (struct sp_text){name->text, name->size});
        put_process(s, "process", e->pid, 0);
        put_process(s, "parent_process", parent, 0);
        sp_buffer_text(b, "}}");
        put_actor(s, parent, 0);
    } else if (e->kind == SP_KIND_EXIT) {
        put_process(s, "process", e->pid, 0);
        sp_buffer_text(b, "}");
        if (sp_tape_find(e->tape, 0, "code") != 0)
            put_int(b, "exit_code", sp_tape_int(e->tape, "code", 0));
        put_actor(s, e->pid, 0);
        forget_process(s, e->pid);
    } else {
        const struct sp_text path =
            e->kind == SP_KIND_START ? interpreter(e) : sp_export_text_of(e, "path");
        name_process(s, e->pid, path);
        put_process(s, "process", e->pid, 0);
        put_command(s, e);
        put_file(b, "file", path, 1);
        sp_buffer_text(b, "}");
        if (e->kind == SP_KIND_START)
            sp_buffer_text(b, ",\"actor\":{\"app_name\":\"sandpit\"}");
        else
            put_actor(s, e->pid, e->tid);
        put_status(s, e);
    }
    put_device(s);
}

/* ---- network ------------------------------------------------------------------------------ */

static bool is_ip(struct sp_text address)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    if (address.size == 0 || address.size >= sizeof text ||
        memchr(address.data, '\0', address.size) != NULL)
        return false;
    memcpy(text, address.data, address.size);
    text[address.size] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1 ||
           inet_pton(AF_INET6, text, bytes) == 1;
}

/* An address; a Unix socket has a name. */
static void put_endpoint(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text address = sp_export_text_of(e, "address");
    const int64_t port = sp_tape_int(e->tape, "port", -1);
    sp_buffer_text(b, ",\"dst_endpoint\":{");
    put_text(b, is_ip(address) ? "ip" : "name", address);
    if (port >= 0 && port <= 65535)
        put_int(b, "port", port);
    sp_buffer_text(b, "}");
}

static void add_network(struct ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"src_endpoint\":{\"name\":\"localhost\"}");
    put_endpoint(s, e);
    put_actor(s, e->pid, e->tid);
    put_device(s);
    put_status(s, e);
}

static void put_query(struct ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"query\":{");
    put_text(&s->c->out, "hostname", sp_export_text_of(e, "host"));
    sp_buffer_text(&s->c->out, "}");
}

static void put_answers(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_json_node *nodes = e->tape->nodes;
    const uint32_t i = sp_tape_find(e->tape, 0, "addresses");
    if (i == 0 || nodes[i].type != SP_JSON_ARRAY)
        return;
    sp_buffer_text(b, ",\"answers\":[");
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at].next) {
        if (nodes[at].type != SP_JSON_STRING)
            continue;
        if (b->data[b->size - 1] != '[')
            sp_buffer_append(b, ",", 1);
        sp_buffer_text(b, "{");
        put_text(b, "rdata", (struct sp_text){nodes[at].text, nodes[at].size});
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]");
}

static void add_dns(struct ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"src_endpoint\":{\"name\":\"localhost\"}");
    put_query(s, e);
    put_answers(s, e);
    if (sp_export_text_of(e, "address").size > 0)
        put_endpoint(s, e);
    put_actor(s, e->pid, e->tid);
    put_device(s);
    if (sp_tape_find(e->tape, 0, "error") != 0)
        sp_buffer_text(&s->c->out, ",\"status_id\":2,\"status\":\"Failure\"");
}

/* ---- findings ----------------------------------------------------------------------------- */

static void put_finding_info(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const int64_t first = sp_tape_int(e->tape, "of", -1);
    const struct sp_text category = sp_export_text_of(e, "category");
    sp_buffer_text(b, ",\"finding_info\":{\"uid\":");
    sp_buffer_format(b, "\"%llu-%llu\"", (unsigned long long)s->time_ns,
                     (unsigned long long)(first >= 0 ? (uint64_t)first : e->seq));
    sp_export_title(&s->c->text, e);
    put_text(b, "title", (struct sp_text){s->c->text.data, (uint32_t)s->c->text.size});
    sp_buffer_clear(&s->c->text);
    put_ours(b, "product_uid", "sandpit");
    if (category.size > 0) {
        sp_buffer_text(b, ",\"types\":[");
        sp_export_string(b, category.data, category.size);
        sp_buffer_text(b, "]");
    }
    sp_buffer_text(b, "}");
}

/* What was reached for, by what. */
static void put_evidence(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text path = sp_export_text_of(e, "path");
    sp_buffer_text(b, ",\"evidences\":[{");
    put_process(s, "process", e->pid, e->tid);
    sp_buffer_text(b, "}");
    if (path.size > 0)
        put_file(b, "file", path, sp_ocsf_file_type(e));
    if (sp_export_text_of(e, "address").size > 0)
        put_endpoint(s, e);
    if (sp_node_is(sp_tape_text(e->tape, "operation"), "resolve"))
        put_query(s, e);
    sp_buffer_text(b, "}]");
}

static void add_finding(struct ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text hint = sp_export_text_of(e, "hint");
    const int64_t count = sp_tape_int(e->tape, "count", 1);
    put_finding_info(s, e);
    put_evidence(s, e);
    put_device(s);
    sp_buffer_text(b, ",\"status_id\":1,\"status\":\"New\"");
    if (count > 1 && count <= INT32_MAX)
        put_int(b, "count", count);
    if (hint.size > 0) {
        sp_buffer_text(b, ",\"remediation\":{");
        put_text(b, "desc", hint);
        sp_buffer_text(b, "}");
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static void keep_start(struct ocsf *s, const struct sp_read_event *e)
{
    const int64_t time = sp_tape_int(e->tape, "time", 0);
    const uint32_t host = sp_tape_find(e->tape, 0, "host");
    const uint32_t kernel = host == 0 ? 0 : sp_tape_find(e->tape, host, "kernel");
    const struct sp_json_node *node = &e->tape->nodes[kernel];
    s->time_ns = time > 0 ? (uint64_t)time : 0;
    if (kernel == 0 || node->type != SP_JSON_STRING || node->size > sizeof s->kernel)
        return;
    memcpy(s->kernel, node->text, node->size);
    s->kernel_size = node->size;
}

static int add(void *state, const struct sp_read_event *e)
{
    struct ocsf *s = state;
    struct sp_ocsf_act act;
    if (e->tape == NULL || !sp_ocsf_act_of(e, &act))
        return 0;
    if (e->kind == SP_KIND_START)
        keep_start(s, e);
    put_head(s, e, &act);
    switch (act.class_uid) {
    case SP_OCSF_FILE:
        add_file(s, e);
        break;
    case SP_OCSF_MODULE:
        add_module(s, e);
        break;
    case SP_OCSF_PROCESS:
        add_process(s, e);
        break;
    case SP_OCSF_NETWORK:
        add_network(s, e);
        break;
    case SP_OCSF_DNS:
        add_dns(s, e);
        break;
    default:
        add_finding(s, e);
        break;
    }
    put_unmapped(s, e);
    sp_buffer_text(&s->c->out, "}\n");
    return 0;
}

static void *begin(struct sp_export_context *c)
{
    struct ocsf *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->c = c;
    sp_pair_map_init(&s->processes);
    return s;
}

static void release(void *state)
{
    struct ocsf *s = state;
    for (size_t i = 0; i < s->processes.slots_count; i++)
        free(s->processes.slots[i].value);
    sp_pair_map_release(&s->processes);
    free(s);
}

const struct sp_export_ops sp_export_ocsf = {
    .begin = begin, .add = add, .free = release};
