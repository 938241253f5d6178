#include "supervise/record.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "supervise/frames.h"
#include "supervise/sentence.h"
#include "supervise/shrugged.h"

/* Sixteen frames with every byte escaped; the act's own fields beside them. */
#define STACK_MAX   (128u << 10)
#define MEMBERS_MAX (512u << 10)

static void member(struct sp_buffer *members, const char *key)
{
    if (members->size > 0)
        sp_buffer_append(members, ",", 1);
    sp_buffer_append(members, "\"", 1);
    sp_buffer_text(members, key);
    sp_buffer_append(members, "\":", 2);
}

void sp_member_text(struct sp_buffer *members, const char *key, const char *text)
{
    member(members, key);
    sp_json_string(members, text, strlen(text));
}

void sp_member_int(struct sp_buffer *members, const char *key, int64_t value)
{
    member(members, key);
    sp_json_int(members, value);
}

/* Files of the interpreter and what is installed in it are not the program's own. */
bool sp_file_reviewed(const struct sp_supervisor *s, const char *file)
{
    const struct sp_ring_config *config = s->is->config;
    if (file[0] == '<')
        return false;
    const char *root = (const char *)config + config->python_offset;
    for (; root[0] != '\0'; root += strlen(root) + 1)
        if (strncmp(file, root, strlen(root)) == 0)
            return false;
    return true;
}

static void stack_line(struct sp_buffer *stack, const char *file, int line,
                       const char *name)
{
    char text[sizeof(struct sp_frame) + 16];
    snprintf(text, sizeof text, "%s:%d %s", file, line, name);
    sp_buffer_text(stack, stack->size == 0 ? "[" : ",");
    sp_json_string(stack, text, strlen(text));
}

/* The claim's stack is text, a line for each frame. */
static void stack_from_text(struct sp_buffer *stack, const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end != NULL ? (size_t)(end - text) : size;
        sp_buffer_text(stack, stack->size == 0 ? "[" : ",");
        sp_json_string(stack, text, length);
        size_t step = end != NULL ? length + 1 : length;
        text += step;
        size -= step;
    }
    if (stack->size > 0)
        sp_buffer_text(stack, "]");
}

void sp_place_from_claim(const struct sp_claim *claim, struct sp_place *ret_place)
{
    size_t size;
    *ret_place = (struct sp_place){0};
    sp_buffer_init(&ret_place->stack, STACK_MAX);
    const char *file = sp_claim_text(claim, SP_FIELD_AT_FILE, &size);
    if (file != NULL) {
        if (size >= sizeof ret_place->file)
            size = sizeof ret_place->file - 1;
        memcpy(ret_place->file, file, size);
        ret_place->line = (int)sp_claim_number(claim, SP_FIELD_AT_LINE, 0);
        ret_place->known = true;
    }
    const char *stack = sp_claim_text(claim, SP_FIELD_STACK, &size);
    if (stack != NULL)
        stack_from_text(&ret_place->stack, stack, size);
}

/* The thread's stack, as it stands in its memory; and where in it the program itself is, unless
 * that is known. */
static void place_from_frames(struct sp_act_call *call, struct sp_place *place)
{
    struct sp_ring_frames layout;
    static struct sp_frame frames[16];
    if (call->process->lane == NULL || !sp_lane_frames(call->process->lane, &layout))
        return;
    unsigned count = sp_frames_walk(&layout, call->process->pid, (pid_t)call->n->pid,
                                    frames, sizeof frames / sizeof *frames);
    for (unsigned i = 0; i < count; i++) {
        stack_line(&place->stack, frames[i].file, frames[i].line, frames[i].name);
        if (place->known || !sp_file_reviewed(call->s, frames[i].file))
            continue;
        place->known = true;
        place->line = frames[i].line;
        snprintf(place->file, sizeof place->file, "%s", frames[i].file);
    }
    if (place->stack.size > 0)
        sp_buffer_text(&place->stack, "]");
}

bool sp_place_importer(struct sp_act_call *call)
{
    static const char importer[] = "<frozen importlib";
    struct sp_ring_frames layout;
    struct sp_frame frame;
    return call->process->lane != NULL &&
           sp_lane_frames(call->process->lane, &layout) &&
           sp_frames_walk(&layout, call->process->pid, (pid_t)call->n->pid, &frame,
                          1) == 1 &&
           strncmp(frame.file, importer, sizeof importer - 1) == 0;
}

static bool ends_alike(const char *claimed, size_t size, const char *text)
{
    size_t length = strlen(text);
    return size >= length ? memcmp(claimed + size - length, text, length) == 0
                          : memcmp(text + length - size, claimed, size) == 0;
}

/* Whether the claim speaks of the same object: its path (or the second one, of a link for example)
 * ends like the one asked for, or its address is the one. A claim that names none is taken as it
 * is. */
static bool speaks_of(const struct sp_claim *claim, const char *text)
{
    static const enum sp_field fields[] = {SP_FIELD_PATH, SP_FIELD_TARGET,
                                           SP_FIELD_ADDRESS};
    bool names = false;
    for (size_t i = 0; text != NULL && i < sizeof fields / sizeof *fields; i++) {
        size_t size;
        const char *claimed = sp_claim_text(claim, fields[i], &size);
        if (claimed != NULL && ends_alike(claimed, size, text))
            return true;
        names |= claimed != NULL;
    }
    return !names;
}

/* Some events announce what never comes to the kernel: the next act is another one. */
static bool means(const struct sp_claim *claim, const char *op)
{
    size_t size;
    const char *text = sp_claim_text(claim, SP_FIELD_OP, &size);
    return op == NULL || text == NULL ||
           (size == strlen(op) && memcmp(text, op, size) == 0);
}

/* The lane of who made a child that has not become a program of its own. */
static struct sp_lane *makers_lane(const struct sp_act_call *call)
{
    const struct sp_process *process = call->process;
    struct sp_process *parent =
        process->replaced ? NULL
                          : sp_processes_find(&call->s->processes, process->parent);
    return parent != NULL ? parent->lane : NULL;
}

/* Who announced the act: the thread itself, or, for a child between vfork and exec, a thread of
 * its parent. */
static struct sp_lane *announcing_lane(struct sp_act_call *call, enum sp_act act,
                                       pid_t *ret_tid)
{
    *ret_tid = (pid_t)call->n->pid;
    if (call->process->lane != NULL || act != SP_ACT_PROCESS)
        return call->process->lane;
    *ret_tid = 0;
    return makers_lane(call);
}

bool sp_place_claimed(struct sp_act_call *call, enum sp_act act, const char *text,
                      struct sp_place *ret_place, struct sp_claim *ret_claim)
{
    static struct sp_claim claim;
    struct sp_claim *into = ret_claim != NULL ? ret_claim : &claim;
    pid_t tid;
    struct sp_lane *lane = announcing_lane(call, act, &tid);
    bool told = lane != NULL && sp_lane_act(lane, tid, act, into);
    if (!told && lane != NULL && act == SP_ACT_PROCESS) {
        lane = makers_lane(call); /* a fork that runs Python before it executes */
        told = lane != NULL && sp_lane_act(lane, 0, act, into);
    }
    if (told && speaks_of(into, text) && means(into, call->op)) {
        sp_place_from_claim(into, ret_place);
        return true;
    }
    *ret_place = (struct sp_place){.native = act != SP_ACT_NONE};
    sp_buffer_init(&ret_place->stack, STACK_MAX);
    return false;
}

bool sp_place_find(struct sp_act_call *call, enum sp_act act, const char *text,
                   struct sp_place *ret_place, struct sp_claim *ret_claim)
{
    bool claimed = sp_place_claimed(call, act, text, ret_place, ret_claim);
    if (!claimed || ret_place->stack.size == 0)
        place_from_frames(call, ret_place);
    return claimed;
}

void sp_place_release(struct sp_place *place)
{
    sp_buffer_release(&place->stack);
}

void sp_place_forget(struct sp_act_call *call, enum sp_act act)
{
    struct sp_place place;
    (void)sp_place_claimed(call, act, NULL, &place, NULL);
    sp_place_release(&place);
}

void sp_place_members(const struct sp_place *place, struct sp_buffer *members)
{
    if (place->known) {
        char at[sizeof place->file + 16];
        snprintf(at, sizeof at, "%s:%d", place->file, place->line);
        sp_member_text(members, "at", at);
    }
    if (place->native)
        sp_member_text(members, "origin", "native");
}

void sp_record_begin(struct sp_act_call *call, enum sp_kind kind)
{
    struct sp_supervisor *s = call->s;
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, s->writer, 0);
    sp_trace_begin(s->writer, kind, SP_LAYER_KERNEL, sp_supervisor_t(s),
                   call->process->pid, (int)call->n->pid);
}

void sp_record_act(struct sp_act_call *call, enum sp_kind kind,
                   const struct sp_buffer *members)
{
    struct sp_supervisor *s = call->s;
    if (s->phase < SP_PHASE_RUNNING) {
        sp_early_add(&s->early, kind, sp_supervisor_t(s), call->process->pid,
                     (pid_t)call->n->pid, members);
        return;
    }
    sp_record_begin(call, kind);
    sp_trace_members(s->writer, members->data, members->size);
    sp_trace_end(s->writer);
}

struct sp_verdict sp_verdict_always(const struct sp_policy *policy)
{
    return (struct sp_verdict){.action = SP_DENY,
                               .source = sp_policy_text(policy, policy->source),
                               .expected = policy->traces_only != 0,
                               .list = SP_LIST_COUNT};
}

bool sp_stop_wanted(const struct sp_supervisor *s)
{
    return !s->stopped && sp_policy_setting(s->policy, SP_SETTING_ON_VIOLATION) ==
                              SP_ON_VIOLATION_STOP;
}

void sp_stop(struct sp_supervisor *s, const char *sentence)
{
    s->stopped = true;
    snprintf(s->stopped_by, sizeof s->stopped_by, "%s", sentence);
}

static void denial_members(const struct sp_denial *denial, const struct sp_place *place,
                           const char *action, const char *sentence, const char *hint,
                           struct sp_buffer *members)
{
    const struct sp_verdict *v = &denial->verdict;
    sp_member_text(members, "category", denial->category);
    sp_member_text(members, "operation", denial->operation);
    sp_member_text(members, "target", denial->target);
    sp_member_text(members, "rule", v->rule[0] != '\0' ? v->rule : "every policy");
    if (v->by_rule) {
        char source[200];
        snprintf(source, sizeof source, v->line != 0 ? "%s:%u" : "%s", v->source,
                 v->line);
        sp_member_text(members, "source", source);
    }
    sp_member_text(members, "action", action);
    sp_member_text(members, "message", sentence);
    sp_member_text(members, "hint", hint);
    if (place->known) {
        sp_member_text(members, "file", place->file);
        sp_member_int(members, "line", place->line);
    }
    sp_place_members(place, members);
    if (place->stack.size > 0) {
        member(members, "stack");
        sp_buffer_append(members, place->stack.data, place->stack.size);
    }
    if (denial->members != NULL && denial->members->size > 0) {
        sp_buffer_append(members, ",", 1);
        sp_buffer_append(members, denial->members->data, denial->members->size);
    }
}

/* Two denials are one when these agree. */
static void denial_key(const struct sp_denial *denial, const struct sp_place *place,
                       struct sp_buffer *key)
{
    sp_buffer_format(key, "%s\n%s\n%s\n%s:%d", denial->operation, denial->verdict.rule,
                     denial->sameness != NULL ? denial->sameness : denial->target,
                     place->file, place->line);
}

/* Under a policy that only traces, what is refused nonetheless is told as an attempt on what
 * every policy protects, and is no violation. */
static void write_denial(struct sp_act_call *call, const struct sp_denial *denial,
                         const struct sp_place *place, const char *action,
                         const struct sp_explanation *explanation)
{
    struct sp_supervisor *s = call->s;
    bool expected = denial->verdict.expected;
    struct sp_buffer members;
    struct sp_buffer key;
    sp_buffer_init(&members, MEMBERS_MAX);
    sp_buffer_init(&key, MEMBERS_MAX);
    denial_members(denial, place, action, call->sentence, explanation->hint, &members);
    denial_key(denial, place, &key);
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, s->writer, 0);
    if (expected)
        sp_buffer_text(&members, ",\"expected\":true");
    sp_violations_add(expected ? &s->refusals : &s->violations, s->writer,
                      denial->layer, sp_supervisor_t(s), call->process->pid,
                      (int)call->n->pid, &key, &members);
    sp_buffer_release(&members);
    sp_buffer_release(&key);
}

void sp_record_denial(struct sp_act_call *call, const struct sp_denial *given,
                      const struct sp_place *place)
{
    struct sp_supervisor *s = call->s;
    struct sp_denial denial_here = *given;
    const struct sp_denial *denial = &denial_here;
    if (given->verdict.by_rule &&
        sp_shrugged(s, given->operation, given->target, place))
        denial_here.verdict.expected = true;
    bool observed = call->observing && denial->verdict.by_rule;
    bool stop = !observed && !denial->verdict.expected && sp_stop_wanted(s);
    struct sp_explanation explanation;
    sp_policy_explain(s->policy, &denial->verdict, denial->operation, denial->target,
                      &explanation);
    call->denied = true;
    call->observed |= observed;
    call->sentence = sp_sentence_make(&explanation, place);
    /* What is observed and expected is done, and told of as that. */
    if (!observed || !denial->verdict.expected)
        write_denial(call, denial, place,
                     observed ? "observe"
                     : stop   ? "stop"
                              : "deny",
                     &explanation);
    if (stop)
        sp_stop(s, call->sentence);
}

void sp_record_expected(struct sp_act_call *call, enum sp_kind kind,
                        const struct sp_denial *denial, const struct sp_place *place)
{
    struct sp_explanation explanation;
    struct sp_buffer members;
    sp_policy_explain(call->s->policy, &denial->verdict, denial->operation,
                      denial->target, &explanation);
    call->sentence = sp_sentence_make(&explanation, place);
    sp_buffer_init(&members, MEMBERS_MAX);
    if (denial->members != NULL)
        sp_buffer_append(&members, denial->members->data, denial->members->size);
    sp_place_members(place, &members);
    sp_member_text(&members, "rule", denial->verdict.rule);
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, call->s->writer, 0);
    sp_trace_begin(call->s->writer, kind, denial->layer, sp_supervisor_t(call->s),
                   call->process->pid, (int)call->n->pid);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_bool(call->s->writer, "expected", true);
    sp_trace_end(call->s->writer);
    sp_buffer_release(&members);
}
