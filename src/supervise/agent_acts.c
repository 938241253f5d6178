/* What an agent calls for: its ring, a drain, a verdict on what it is about to do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervise/record.h"

struct by_number {
    uint32_t number;
    struct sp_lane *lane;
};

static void match_number(void *context, struct sp_process *process)
{
    struct by_number *search = context;
    if (process->lane != NULL && sp_lane_number(process->lane) == search->number)
        search->lane = process->lane;
}

static void retire(struct sp_supervisor *s, struct sp_process *process)
{
    if (process->lane == NULL)
        return;
    sp_lane_finish(process->lane, s->writer);
    sp_lane_free(process->lane);
    process->lane = NULL;
}

void sp_supervisor_begin(struct sp_supervisor *s, uint32_t python_version)
{
    s->python_version = python_version;
    s->phase = SP_PHASE_RUNNING;
    s->begun_ns = sp_clock_ns();
    sp_trace_begin(s->writer, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, s->guest.pid,
                   s->guest.pid);
    s->is->write_start(s->is->context, s->writer, python_version);
    sp_trace_end(s->writer);
    if (s->is->source != NULL)
        (void)sp_sources_tell(&s->lanes.sources, s->writer, s->is->source,
                              SP_LAYER_SUPERVISOR, 0, s->guest.pid, s->guest.pid);
    sp_early_tell(&s->early, s->writer);
    sp_trace_flush(s->writer,
                   true); /* from here on the file is a trace, whatever happens to us */
    if (s->is->on_started != NULL)
        s->is->on_started(s->is->context, s->guest.pid);
}

static struct sp_answer hello(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    struct sp_process *process = call->process;
    struct by_number parent = {0};
    struct sp_error error;
    int fd;
    if (sp_act_arg(call, 1) == SP_HELLO_FORK) {
        parent.number = (uint32_t)sp_act_arg(call, 3);
        sp_processes_each(&s->processes, match_number, &parent);
        if (process->lane != NULL && parent.lane == process->lane)
            parent.lane = NULL;
    } else {
        if (s->phase == SP_PHASE_LOADING)
            sp_supervisor_begin(s, (uint32_t)sp_act_arg(call, 2));
        sp_exec_confirm(s, process, true);
    }
    retire(s, process);
    s->lane_pids[(s->lane_last + 1) % SP_LANE_PIDS] = process->pid;
    if (sp_lane_new(&s->lanes, ++s->lane_last, process->pid, parent.lane,
                    &process->lane, &fd, &error) != 0) {
        process->lane = NULL;
        sp_trace_lost(s->writer, 1, 0, "what a process did that got no ring");
        return SP_REFUSE(ENOMEM);
    }
    return (struct sp_answer){
        .kind = SP_ANSWER_GIVE, .value = fd, .close_on_exec = true};
}

/* The agent goes on at once; what it wrote so far is taken meanwhile. */
static struct sp_answer kick(void)
{
    return (struct sp_answer){.kind = SP_ANSWER_RETURN, .drain = true};
}

static struct sp_answer wait_for_room(struct sp_act_call *call)
{
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, call->s->writer, 0);
    return SP_RETURN(0);
}

static void copy_text(const struct sp_claim *claim, enum sp_field field, char *to,
                      size_t size)
{
    size_t length = 0;
    const char *text = sp_claim_text(claim, field, &length);
    if (text == NULL)
        length = 0;
    if (length >= size)
        length = size - 1;
    if (length > 0)
        memcpy(to, text, length);
    to[length] = '\0';
}

/* Fields that a denial writes by itself. */
static bool not_of_the_act(enum sp_field field, void *context)
{
    (void)context;
    return field == SP_FIELD_AT_FILE || field == SP_FIELD_AT_LINE ||
           field == SP_FIELD_STACK || field == SP_FIELD_OPERATION ||
           field == SP_FIELD_TARGET || field == SP_FIELD_FILE ||
           field == SP_FIELD_LINE || field == SP_FIELD_MESSAGE || field == SP_FIELD_OP;
}

static void act_members(const struct sp_claim *claim, struct sp_buffer *members)
{
    for (uint32_t i = 0; i < claim->count; i++) {
        const struct sp_claim_field *f = &claim->fields[i];
        char text[SP_TEXT_MAX + 1];
        if (not_of_the_act((enum sp_field)f->field, NULL))
            continue;
        if (sp_field_type(f->field) == SP_TYPE_TEXT) {
            copy_text(claim, (enum sp_field)f->field, text, sizeof text);
            sp_member_text(members, sp_field_key(f->field), text);
        } else {
            sp_member_int(members, sp_field_key(f->field), f->number);
        }
    }
}

/* "127.0.0.1:80", "[::1]:80", or what there is. */
static void describe_address(const struct sp_claim *claim, char target[SP_TEXT_MAX + 1])
{
    char address[300];
    int64_t port = sp_claim_number(claim, SP_FIELD_PORT, -1);
    copy_text(claim, SP_FIELD_ADDRESS, address, sizeof address);
    if (port < 0)
        snprintf(target, SP_TEXT_MAX + 1, "%s",
                 address[0] != '\0' ? address : "a socket");
    else if (strchr(address, ':') != NULL)
        snprintf(target, SP_TEXT_MAX + 1, "[%s]:%lld", address, (long long)port);
    else
        snprintf(target, SP_TEXT_MAX + 1, "%s:%lld", address, (long long)port);
}

static void describe_socket(const struct sp_claim *claim, char target[SP_TEXT_MAX + 1])
{
    char family[40];
    char type[40];
    copy_text(claim, SP_FIELD_FAMILY, family, sizeof family);
    copy_text(claim, SP_FIELD_TYPE, type, sizeof type);
    snprintf(target, SP_TEXT_MAX + 1, "%s %s", family, type);
}

/* The agent's matcher says no and asks whether it is so. */
static bool judge(struct sp_act_call *call, enum sp_kind kind,
                  const struct sp_claim *claim, struct sp_denial *denial,
                  char target[SP_TEXT_MAX + 1])
{
    const struct sp_policy *policy = call->s->policy;
    if (kind == SP_KIND_IMPORT)
        return sp_import_judge(call, claim, denial, target, SP_TEXT_MAX + 1);
    if (kind == SP_KIND_EXEC) {
        char path[SP_TEXT_MAX + 1];
        copy_text(claim, SP_FIELD_PATH, path, sizeof path);
        return sp_exec_judge(call, path, denial, target, SP_TEXT_MAX + 1);
    }
    char op[16];
    copy_text(claim, SP_FIELD_OP, op, sizeof op);
    denial->operation = kind == SP_KIND_BIND          ? "bind"
                        : kind == SP_KIND_SOCKET      ? "socket"
                        : strncmp(op, "send", 4) == 0 ? "send"
                                                      : "connect";
    if (kind == SP_KIND_SOCKET)
        describe_socket(claim, target);
    else
        describe_address(claim, target);
    denial->category = "network";
    denial->verdict = sp_policy_network(policy);
    /* The filter makes no socket where nobody could judge what it is used for. */
    if (denial->verdict.action == SP_ALLOW && call->s->reach == SP_REACH_JUDGED)
        denial->verdict = (struct sp_verdict){
            .action = SP_DENY,
            .by_rule = true,
            .rule = "network: nothing is granted without a listener",
            .source = sp_policy_text(policy, policy->source),
            .list = SP_LIST_COUNT};
    return denial->verdict.action == SP_DENY;
}

static struct sp_answer ask(struct sp_act_call *call)
{
    static struct sp_claim claim;
    static char target[SP_TEXT_MAX + 1];
    struct sp_lane *lane = call->process->lane;
    enum sp_kind kind;
    struct sp_place place;
    if (lane == NULL || !sp_lane_question(lane, &kind, &claim))
        return SP_REFUSE(EINVAL);
    /* What reaches the kernel is observed there. */
    if (call->s->observed != NULL && kind != SP_KIND_IMPORT)
        return SP_RETURN(0);
    struct sp_denial denial = {.target = target, .layer = SP_LAYER_PYTHON};
    if (!judge(call, kind, &claim, &denial, target))
        return SP_RETURN(0);
    /* Several addresses of one host, tried in turn on one line, are one denial. */
    char host[300];
    char sameness[320];
    copy_text(&claim, SP_FIELD_HOST, host, sizeof host);
    if (host[0] != '\0') {
        snprintf(sameness, sizeof sameness, "%s %lld", host,
                 (long long)sp_claim_number(&claim, SP_FIELD_PORT, 0));
        denial.sameness = sameness;
    }
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    act_members(&claim, &members);
    if (call->s->guest.listener <
        0) /* the kernel has not shown us that it was asked at all */
        sp_buffer_text(&members,
                       members.size > 0 ? ",\"claim\":true" : "\"claim\":true");
    denial.members = &members;
    sp_place_from_claim(&claim, &place);
    if (denial.verdict.expected && !call->observing)
        sp_record_expected(call, kind, &denial, &place);
    else
        sp_record_denial(call, &denial, &place);
    sp_lane_answer(lane, call->sentence);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_RETURN(1);
}

static void resolve_members(const struct sp_lookup *lookup, const char *host,
                            struct sp_buffer *members)
{
    sp_member_text(members, "host", host);
    if (lookup->tried) {
        sp_member_text(members, "address", lookup->address);
        sp_member_int(members, "port", lookup->port);
    }
}

/* A local file had the answer: what was refused on the way there was not needed. */
static void tell_answered(struct sp_act_call *call, const struct sp_buffer *members,
                          const struct sp_place *place)
{
    struct sp_buffer all;
    sp_buffer_init(&all, 64u << 10);
    sp_buffer_append(&all, members->data, members->size);
    sp_place_members(place, &all);
    sp_record_begin(call, SP_KIND_RESOLVE);
    sp_trace_members(call->s->writer, all.data, all.size);
    sp_trace_bool(call->s->writer, "expected", true);
    sp_trace_end(call->s->writer);
    sp_buffer_release(&all);
}

/* It went as far as it would: whether the policy that is observed denies it. */
static void observe_lookup(struct sp_act_call *call, const struct sp_lookup *lookup,
                           const char *host, const struct sp_place *place,
                           const struct sp_buffer *members)
{
    struct sp_denial denial = {.category = "network",
                               .operation = "resolve",
                               .target = host,
                               .verdict = sp_policy_host(call->s->policy, host),
                               .layer = SP_LAYER_KERNEL,
                               .members = members};
    if (lookup->tried && denial.verdict.action == SP_DENY)
        sp_record_denial(call, &denial, place);
}

/* The name is not granted; or it is, and libc asked a server that is not. */
static struct sp_verdict lookup_verdict(const struct sp_supervisor *s,
                                        const struct sp_lookup *lookup,
                                        const char *host)
{
    char normal[SP_HOST_BYTES];
    struct sp_verdict verdict = {.action = SP_ALLOW};
    if (s->reach == SP_REACH_JUDGED && sp_host_normal(host, normal))
        verdict = sp_policy_host(s->policy, normal);
    if (verdict.action == SP_ALLOW && lookup->judged)
        verdict = lookup->verdict;
    return verdict.action == SP_DENY ? verdict : sp_policy_network(s->policy);
}

static struct sp_answer lookup_over(struct sp_act_call *call)
{
    static struct sp_claim claim;
    struct sp_supervisor *s = call->s;
    struct sp_lane *lane = call->process->lane;
    pid_t tid = (pid_t)call->n->pid;
    struct sp_lookup *lookup = sp_lookups_find(&s->lookups, tid);
    if (lane == NULL || !sp_lane_lookup_end(lane, tid, sp_act_arg(call, 1), &claim) ||
        lookup == NULL)
        return SP_RETURN(0);
    char host[300];
    struct sp_place place;
    struct sp_buffer members;
    bool answered = sp_act_arg(call, 2) != 0;
    copy_text(&claim, SP_FIELD_HOST, host, sizeof host);
    /* Where in the program is what the thread announced before libc was called. */
    sp_place_find(call, SP_ACT_CONNECT, NULL, &place, NULL);
    sp_buffer_init(&members, 64u << 10);
    resolve_members(lookup, host, &members);
    if (s->observed != NULL) {
        observe_lookup(call, lookup, host, &place, &members);
        answered = true;
    } else if (answered) {
        tell_answered(call, &members, &place);
    } else {
        struct sp_denial denial = {.category = "network",
                                   .operation = "resolve",
                                   .target = host,
                                   .verdict = lookup_verdict(s, lookup, host),
                                   .layer = SP_LAYER_KERNEL,
                                   .members = &members};
        sp_record_denial(call, &denial, &place);
        sp_lane_lookup_answer(lane, sp_act_arg(call, 1), call->sentence);
    }
    sp_lookup_end(lookup);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_RETURN(answered ? 0 : 1);
}

struct sp_answer sp_act_agent(struct sp_act_call *call)
{
    switch (sp_act_arg(call, 0)) {
    case SP_CALL_HELLO:
        return hello(call);
    case SP_CALL_KICK:
        return kick();
    case SP_CALL_WAIT:
        return wait_for_room(call);
    case SP_CALL_ASK:
        return ask(call);
    case SP_CALL_LOOKUP:
        return lookup_over(call);
    case SP_CALL_RESOLVE:
        return sp_act_resolve(call);
    default:
        return SP_REFUSE(ENOSYS);
    }
}
