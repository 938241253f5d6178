/* Hosts and addresses by what was done with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/uses.h"

const char *const sp_network_ways[] = {
    [SP_NETWORK_RESOLVED] = "resolve", [SP_NETWORK_CONNECTED] = "connect",
    [SP_NETWORK_SENT] = "send",        [SP_NETWORK_BOUND] = "bind",
    [SP_NETWORK_LISTENED] = "listen",  [SP_NETWORK_FAILED] = "failed",
    [SP_NETWORK_DENIED] = "denied",    NULL};

/* ---- which name an address was looked up by ------------------------------------------------ */

static void keep_answer(struct sp_uses *u, const struct sp_json_node *address,
                        uint32_t host)
{
    uint32_t i;
    sp_tally_add(&u->looked, address->text, address->size, 1);
    if (!sp_tally_find(&u->looked, address->text, address->size, &i))
        return;
    if (i >= u->host_of_count) {
        uint32_t *host_of = realloc(u->host_of, (i + 64) * sizeof *host_of);
        if (host_of == NULL)
            return;
        memset(host_of + u->host_of_count, 0,
               (i + 64 - u->host_of_count) * sizeof *host_of);
        u->host_of = host_of;
        u->host_of_count = i + 64;
    }
    u->host_of[i] = host + 1;
}

static void keep_answers(struct sp_uses *u, const struct sp_tape *tape)
{
    uint32_t host;
    const struct sp_json_node *name = sp_tape_text(tape, "host");
    const uint32_t list = sp_tape_find(tape, 0, "addresses");
    if (name == NULL || list == 0 || tape->nodes[list].type != SP_JSON_ARRAY)
        return;
    sp_tally_add(&u->hosts, name->text, name->size, 1);
    if (!sp_tally_find(&u->hosts, name->text, name->size, &host))
        return;
    for (uint32_t at = list + 1; at < tape->nodes[list].next; at = tape->nodes[at].next)
        if (tape->nodes[at].type == SP_JSON_STRING)
            keep_answer(u, &tape->nodes[at], host);
}

static uint32_t host_of(const struct sp_uses *u, const struct sp_json_node *address)
{
    uint32_t i;
    return sp_tally_find(&u->looked, address->text, address->size, &i) &&
                   i < u->host_of_count
               ? u->host_of[i]
               : 0;
}

/* ---- uses ---------------------------------------------------------------------------------- */

static void add_address(struct sp_uses *u, const struct sp_read_event *e,
                        const struct sp_json_node *address, unsigned way)
{
    char text[SP_TALLY_TEXT_MAX];
    const int64_t port = sp_tape_int(e->tape, "port", -1);
    struct sp_use *use;
    if (port < 0) {
        use = sp_uses_add(u, address->text, address->size, way, e);
    } else {
        const bool colons = memchr(address->text, ':', address->size) != NULL;
        const int n =
            snprintf(text, sizeof text, "%s%.*s%s:%" PRId64, colons ? "[" : "",
                     (int)(address->size < 900 ? address->size : 900), address->text,
                     colons ? "]" : "", port);
        use = sp_uses_add(u, text, (size_t)n, way, e);
    }
    if (use != NULL && use->host == 0)
        use->host = host_of(u, address);
}

static void add(struct sp_uses *u, const struct sp_read_event *e, unsigned way)
{
    const struct sp_json_node *address = sp_tape_text(e->tape, "address");
    const struct sp_json_node *target = sp_tape_text(e->tape, "target");
    if (address != NULL && address->size > 0)
        add_address(u, e, address, way);
    else if (target != NULL && target->size > 0)
        sp_uses_add(u, target->text, target->size, way, e);
}

static void add_lookup(struct sp_uses *u, const struct sp_read_event *e)
{
    const struct sp_json_node *host = sp_tape_text(e->tape, "host");
    const bool failed = sp_tape_find(e->tape, 0, "error") != 0;
    keep_answers(u, e->tape);
    if (host != NULL && host->size > 0)
        sp_uses_add(u, host->text, host->size,
                    failed ? SP_NETWORK_FAILED : SP_NETWORK_RESOLVED, e);
}

static unsigned way_of(const struct sp_read_event *e)
{
    const struct sp_json_node *op = sp_tape_text(e->tape, "op");
    if (sp_tape_int(e->tape, "errno", 0) > 0 || sp_tape_true(e->tape, "expected"))
        return SP_NETWORK_FAILED;
    if (e->kind == SP_KIND_CONNECT)
        return sp_node_is(op, "send") ? SP_NETWORK_SENT : SP_NETWORK_CONNECTED;
    return sp_node_is(op, "listen") ? SP_NETWORK_LISTENED : SP_NETWORK_BOUND;
}

void sp_network_add(struct sp_uses *u, const struct sp_read_event *e)
{
    if (e->tape == NULL)
        return;
    switch (e->kind) {
    case SP_KIND_RESOLVE:
        add_lookup(u, e);
        break;
    case SP_KIND_CONNECT:
    case SP_KIND_BIND:
        add(u, e, way_of(e));
        break;
    case SP_KIND_VIOLATION:
        if (sp_node_is(sp_tape_text(e->tape, "category"), "network") &&
            !sp_node_is(sp_tape_text(e->tape, "action"), "observe"))
            add(u, e, SP_NETWORK_DENIED);
        break;
    default:
        break;
    }
}
