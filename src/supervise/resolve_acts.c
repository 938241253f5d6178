/* A program asks for the addresses of a name. Names that the policy grants the resolver looks
 * up; where they lead is remembered, so that a connection there is judged by the name too. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "supervise/network.h"
#include "sys/guest.h"
#include "sys/listener.h"

#define PATIENCE_NS UINT64_C(65000000000) /* longer than the resolver's own */

static void resolve_members(struct sp_act_call *call, const char *host,
                            struct sp_buffer *members)
{
    struct sp_place place;
    sp_place_find(call, SP_ACT_CONNECT, NULL, &place, NULL);
    sp_member_text(members, "host", host);
    sp_place_members(&place, members);
    sp_place_release(&place);
}

/* A rule forbids this name: it is not to be looked up by another way either. */
static struct sp_answer deny(struct sp_act_call *call, const char *host,
                             const struct sp_verdict *verdict)
{
    static struct sp_name_answer answer;
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "host", host);
    sp_place_find(call, SP_ACT_CONNECT, NULL, &place, NULL);
    struct sp_denial denial = {.category = "network",
                               .operation = "resolve",
                               .target = host,
                               .verdict = *verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    memset(&answer, 0, sizeof answer);
    answer.code = EAI_FAIL;
    snprintf(answer.message, sizeof answer.message, "%s", call->sentence);
    int result = sp_guest_write((pid_t)call->n->pid, sp_act_arg(call, 2), &answer,
                                sizeof answer);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return result == 0 ? SP_RETURN(SP_NAME_DENIED) : SP_REFUSE(EFAULT);
}

static struct sp_answer look_up(struct sp_act_call *call, const char *host,
                                struct sp_name_question *question)
{
    struct sp_supervisor *s = call->s;
    struct sp_parked *p = sp_park(call, SP_PARKED_RESOLVE);
    if (p == NULL)
        return SP_REFUSE(EAGAIN);
    snprintf(p->host, sizeof p->host, "%s", host);
    p->answer_at = sp_act_arg(call, 2);
    p->deadline_ns = sp_clock_ns() + PATIENCE_NS;
    resolve_members(call, host, &p->members);
    if (sp_resolver_ask(&s->resolver, p->serial, question))
        return SP_LATER;
    sp_park_drop(s, p);
    return SP_REFUSE(EAGAIN);
}

struct sp_answer sp_act_resolve(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    struct sp_name_question question;
    char host[SP_HOST_BYTES];
    if (s->resolver.pid == 0)
        return SP_RETURN(SP_NAME_NEVER);
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 1), &question,
                      sizeof question) != 0 ||
        !sp_notify_valid(call))
        return SP_REFUSE(EFAULT);
    question.host[sizeof question.host - 1] = '\0';
    if (!sp_host_normal(question.host, host))
        return SP_RETURN(SP_NAME_LOCAL);
    struct sp_verdict verdict = sp_policy_host(s->policy, host);
    if (verdict.action == SP_ALLOW)
        return look_up(call, host, &question);
    return sp_policy_names_host(s->policy, host) ? deny(call, host, &verdict)
                                                 : SP_RETURN(SP_NAME_LOCAL);
}

/* ---- answers -------------------------------------------------------------------------- */

static void remember(struct sp_supervisor *s, const char *host,
                     const struct sp_name_answer *names)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    for (uint32_t i = 0; i < names->count; i++) {
        const struct sp_name_address *a = &names->addresses[i];
        uint8_t bytes[16];
        if (a->family == AF_INET6) {
            memcpy(bytes, a->bytes, 16);
        } else {
            memcpy(bytes, mapped, sizeof mapped);
            memcpy(bytes + sizeof mapped, a->bytes, 4);
        }
        sp_hosts_add(&s->hosts, host, bytes);
    }
}

static void tell(struct sp_supervisor *s, const struct sp_parked *p,
                 const struct sp_name_answer *names)
{
    const struct sp_process *process = sp_processes_find(&s->processes, p->pid);
    if (process != NULL && process->lane != NULL)
        sp_lane_drain(process->lane, s->writer, 0);
    sp_trace_begin(s->writer, SP_KIND_RESOLVE, SP_LAYER_KERNEL, sp_supervisor_t(s),
                   p->pid, p->tid);
    sp_trace_members(s->writer, p->members.data, p->members.size);
    if (names->code != 0)
        sp_trace_string(s->writer, "error", gai_strerror(names->code));
    struct sp_buffer list;
    sp_buffer_init(&list, 8192);
    for (uint32_t i = 0; i < names->count; i++) {
        char text[INET6_ADDRSTRLEN] = "";
        inet_ntop(names->addresses[i].family, names->addresses[i].bytes, text,
                  sizeof text);
        sp_buffer_text(&list, i == 0 ? "\"addresses\":[" : ",");
        sp_json_string(&list, text, strlen(text));
    }
    if (names->count > 0) {
        sp_buffer_text(&list, "]");
        sp_trace_members(s->writer, list.data, list.size);
    }
    sp_trace_end(s->writer);
    sp_buffer_release(&list);
}

static void finish(struct sp_supervisor *s, struct sp_parked *p,
                   const struct sp_name_answer *names)
{
    if (!sp_listener_valid(s->guest.listener, p->id)) {
        sp_park_drop(s, p);
        return;
    }
    remember(s, p->host, names);
    tell(s, p, names);
    int result = sp_guest_write(p->tid, p->answer_at, names, sizeof *names);
    sp_park_answer(s, p, result == 0 ? SP_RETURN(SP_NAME_ANSWERED) : SP_REFUSE(EFAULT));
}

void sp_resolve_late(struct sp_supervisor *s, struct sp_parked *parked)
{
    static const struct sp_name_answer late = {.code = EAI_AGAIN};
    finish(s, parked, &late);
}

bool sp_resolve_answered(struct sp_supervisor *s)
{
    static struct sp_resolver_answer answer;
    int got = sp_resolver_take(&s->resolver, &answer);
    if (got > 0) {
        struct sp_parked *p = sp_parked_find(&s->parked, answer.serial);
        memset(answer.names.message, 0, sizeof answer.names.message);
        if (p != NULL && p->kind == SP_PARKED_RESOLVE)
            finish(s, p, &answer.names);
    }
    if (got >= 0)
        return true;
    for (unsigned i = 0; i < SP_PARKED_MAX; i++) {
        struct sp_parked *p = s->parked.items[i];
        if (p != NULL && p->kind == SP_PARKED_RESOLVE)
            sp_resolve_late(s, p);
    }
    return false;
}
