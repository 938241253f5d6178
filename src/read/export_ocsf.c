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
#include "read/ocsf_objects.h"

#define PROCESSES_MAX 32768u /* alive at once whose names are kept */

/* ---- files -------------------------------------------------------------------------------- */

static void put_file(struct sp_buffer *b, const char *key, struct sp_text path,
                     int64_t type)
{
    sp_json_key(b, key);
    sp_buffer_text(b, "{");
    sp_ocsf_put_text(b, "name", sp_export_basename(path));
    sp_ocsf_put_text(b, "path", path);
    sp_ocsf_put_int(b, "type_id", type);
    sp_buffer_text(b, "}");
}

static void add_file(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text to = sp_export_text_of(e, "to");
    put_file(b, "file", sp_export_text_of(e, "path"), sp_ocsf_file_type(e));
    if (to.size > 0)
        put_file(b, "file_result", to, sp_ocsf_file_type(e));
    sp_ocsf_put_actor(s, e->pid, e->tid);
    sp_ocsf_put_device(s);
    sp_ocsf_put_status(s, e);
}

static void add_module(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, ",\"module\":{\"load_type_id\":1");
    put_file(b, "file", sp_export_text_of(e, "library"), 1);
    sp_buffer_text(b, "}");
    sp_ocsf_put_actor(s, e->pid, e->tid);
    sp_ocsf_put_device(s);
}

/* ---- processes ---------------------------------------------------------------------------- */

static void name_process(struct sp_ocsf *s, int64_t pid, struct sp_text path)
{
    const struct sp_text name = sp_export_basename(path);
    struct sp_ocsf_name *p = sp_pair_map_get(&s->processes, pid, 0);
    if (p == NULL) {
        p = s->processes.count < PROCESSES_MAX ? calloc(1, sizeof *p) : NULL;
        if (p == NULL)
            return;
        if (!sp_pair_map_add(&s->processes, pid, 0, p)) {
            free(p);
            return;
        }
    }
    p->size = name.size < SP_OCSF_NAME_MAX
                  ? name.size
                  : (uint32_t)sp_json_whole(name.data, SP_OCSF_NAME_MAX);
    memcpy(p->text, name.data, p->size);
}

static void forget_process(struct sp_ocsf *s, int64_t pid)
{
    free(sp_pair_map_get(&s->processes, pid, 0));
    sp_pair_map_remove(&s->processes, pid, 0);
}

static void put_command(struct sp_ocsf *s, const struct sp_read_event *e)
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

static void add_process(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    if (e->kind == SP_KIND_FORK) {
        const int64_t parent = sp_tape_int(e->tape, "parent", 0);
        const struct sp_ocsf_name *name = sp_pair_map_get(&s->processes, parent, 0);
        if (name != NULL)
            name_process(s, e->pid, (struct sp_text){name->text, name->size});
        sp_ocsf_put_process(s, "process", e->pid, 0);
        sp_ocsf_put_process(s, "parent_process", parent, 0);
        sp_buffer_text(b, "}}");
        sp_ocsf_put_actor(s, parent, 0);
    } else if (e->kind == SP_KIND_EXIT) {
        sp_ocsf_put_process(s, "process", e->pid, 0);
        sp_buffer_text(b, "}");
        if (sp_tape_find(e->tape, 0, "code") != 0)
            sp_ocsf_put_int(b, "exit_code", sp_tape_int(e->tape, "code", 0));
        sp_ocsf_put_actor(s, e->pid, 0);
        forget_process(s, e->pid);
    } else {
        const struct sp_text path =
            e->kind == SP_KIND_START ? interpreter(e) : sp_export_text_of(e, "path");
        name_process(s, e->pid, path);
        sp_ocsf_put_process(s, "process", e->pid, 0);
        put_command(s, e);
        put_file(b, "file", path, 1);
        sp_buffer_text(b, "}");
        if (e->kind == SP_KIND_START)
            sp_buffer_text(b, ",\"actor\":{\"app_name\":\"sandpit\"}");
        else
            sp_ocsf_put_actor(s, e->pid, e->tid);
        sp_ocsf_put_status(s, e);
    }
    sp_ocsf_put_device(s);
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
static void put_endpoint(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text address = sp_export_text_of(e, "address");
    const int64_t port = sp_tape_int(e->tape, "port", -1);
    sp_buffer_text(b, ",\"dst_endpoint\":{");
    sp_ocsf_put_text(b, is_ip(address) ? "ip" : "name", address);
    if (port >= 0 && port <= 65535)
        sp_ocsf_put_int(b, "port", port);
    sp_buffer_text(b, "}");
}

static void add_network(struct sp_ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"src_endpoint\":{\"name\":\"localhost\"}");
    put_endpoint(s, e);
    sp_ocsf_put_actor(s, e->pid, e->tid);
    sp_ocsf_put_device(s);
    sp_ocsf_put_status(s, e);
}

static void put_query(struct sp_ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"query\":{");
    sp_ocsf_put_text(&s->c->out, "hostname", sp_export_text_of(e, "host"));
    sp_buffer_text(&s->c->out, "}");
}

static void put_answers(struct sp_ocsf *s, const struct sp_read_event *e)
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
        sp_ocsf_put_text(b, "rdata", (struct sp_text){nodes[at].text, nodes[at].size});
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]");
}

static void add_dns(struct sp_ocsf *s, const struct sp_read_event *e)
{
    sp_buffer_text(&s->c->out, ",\"src_endpoint\":{\"name\":\"localhost\"}");
    put_query(s, e);
    put_answers(s, e);
    if (sp_export_text_of(e, "address").size > 0)
        put_endpoint(s, e);
    sp_ocsf_put_actor(s, e->pid, e->tid);
    sp_ocsf_put_device(s);
    if (sp_tape_find(e->tape, 0, "error") != 0)
        sp_buffer_text(&s->c->out, ",\"status_id\":2,\"status\":\"Failure\"");
}

/* ---- findings ----------------------------------------------------------------------------- */

static void put_finding_info(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const int64_t first = sp_tape_int(e->tape, "of", -1);
    const struct sp_text category = sp_export_text_of(e, "category");
    sp_buffer_text(b, ",\"finding_info\":{\"uid\":");
    sp_buffer_format(b, "\"%llu-%llu\"", (unsigned long long)s->time_ns,
                     (unsigned long long)(first >= 0 ? (uint64_t)first : e->seq));
    sp_export_title(&s->c->text, e);
    sp_ocsf_put_text(b, "title",
                     (struct sp_text){s->c->text.data, (uint32_t)s->c->text.size});
    sp_buffer_clear(&s->c->text);
    sp_ocsf_put_ours(b, "product_uid", "sandpit");
    if (category.size > 0) {
        sp_buffer_text(b, ",\"types\":[");
        sp_export_string(b, category.data, category.size);
        sp_buffer_text(b, "]");
    }
    sp_buffer_text(b, "}");
}

/* What was reached for, by what. */
static void put_evidence(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text path = sp_export_text_of(e, "path");
    sp_buffer_text(b, ",\"evidences\":[{");
    sp_ocsf_put_process(s, "process", e->pid, e->tid);
    sp_buffer_text(b, "}");
    if (path.size > 0)
        put_file(b, "file", path, sp_ocsf_file_type(e));
    if (sp_export_text_of(e, "address").size > 0)
        put_endpoint(s, e);
    if (sp_node_is(sp_tape_text(e->tape, "operation"), "resolve"))
        put_query(s, e);
    sp_buffer_text(b, "}]");
}

static void add_finding(struct sp_ocsf *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text hint = sp_export_text_of(e, "hint");
    const int64_t count = sp_tape_int(e->tape, "count", 1);
    put_finding_info(s, e);
    put_evidence(s, e);
    sp_ocsf_put_device(s);
    sp_buffer_text(b, ",\"status_id\":1,\"status\":\"New\"");
    if (count > 1 && count <= INT32_MAX)
        sp_ocsf_put_int(b, "count", count);
    if (hint.size > 0) {
        sp_buffer_text(b, ",\"remediation\":{");
        sp_ocsf_put_text(b, "desc", hint);
        sp_buffer_text(b, "}");
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static void keep_start(struct sp_ocsf *s, const struct sp_read_event *e)
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
    struct sp_ocsf *s = state;
    struct sp_ocsf_act act;
    if (e->tape == NULL || !sp_ocsf_act_of(e, &act))
        return 0;
    if (e->kind == SP_KIND_START)
        keep_start(s, e);
    sp_ocsf_put_head(s, e, &act);
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
    sp_ocsf_put_unmapped(s, e);
    sp_buffer_text(&s->c->out, "}\n");
    return 0;
}

static void *begin(struct sp_export_context *c)
{
    struct sp_ocsf *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->c = c;
    sp_pair_map_init(&s->processes);
    return s;
}

static void release(void *state)
{
    struct sp_ocsf *s = state;
    for (size_t i = 0; i < s->processes.slots_count; i++)
        free(s->processes.slots[i].value);
    sp_pair_map_release(&s->processes);
    free(s);
}

const struct sp_export_ops sp_export_ocsf = {
    .begin = begin, .add = add, .free = release};
