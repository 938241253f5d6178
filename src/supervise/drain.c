/* From a ring's words to events of the trace. */
#include <stdio.h>

#include "base/clock.h"
#include "supervise/lane_state.h"
#include "trace/writer.h"

#define RUN_MAX     4096u
#define CHUNK_WORDS 8192u /* after so many the agent is given the room back */
#define TAMPERS_MAX 64u
#define GAP_MAX_NS  4000000000u /* a longer pause begins a new run: `dt` has 32 bits */

#define CALL_RETURN (1u << 31)
#define CALL_RESUME (1u << 30)
#define CALL_RAISED (1u << 29)
#define CALL_ID     (CALL_RAISED - 1)

/* Of the drain that is going on; the supervisor has one thread. */
static struct {
    uint64_t t_ns;      /* of the run's first entry */
    uint64_t gap_ticks; /* told by a TIME message, to be added to the next word's */
    uint32_t count;
    uint32_t calls;
    uint32_t raised_count;
    uint32_t resumed_count;
    int32_t ids[RUN_MAX];
    uint32_t dt[RUN_MAX];
    uint16_t raised[RUN_MAX];
    uint16_t resumed[RUN_MAX];
} run;

static union {
    struct sp_ring_event event;
    struct sp_ring_fold fold;
    struct sp_ring_call call;
    uint64_t words[SP_MESSAGE_WORDS_MAX];
} message;

static void run_flush(struct sp_lane *lane, struct sp_trace_writer *w)
{
    if (run.count == 0)
        return;
    sp_trace_run(w, &(struct sp_trace_run){
                        .t_ns = run.t_ns,
                        .pid = lane->pid,
                        .tid = lane->tid,
                        .count = run.count,
                        .calls = run.calls,
                        .ids = run.ids,
                        .dt = run.dt,
                        .raised = run.raised,
                        .raised_count = run.raised_count,
                        .resumed = run.resumed,
                        .resumed_count = run.resumed_count,
                    });
    run.count = run.calls = run.raised_count = run.resumed_count = 0;
}

/* The id's slow path: a function that the trace does not know yet, or one that is no function. */
static __attribute__((noinline)) uint32_t id_new(struct sp_lane *lane,
                                                 struct sp_trace_writer *w, uint32_t id)
{
    uint64_t t_ns =
        run.count ? run.t_ns : sp_ticks_at(&lane->lanes->ticks, lane->last_ticks);
    return sp_name_id(lane, w, id, t_ns);
}

static inline void call_word(struct sp_lane *lane, struct sp_trace_writer *w,
                             uint64_t word)
{
    uint32_t what = (uint32_t)(word >> 32);
    uint64_t ticks = (uint32_t)word + run.gap_ticks;
    run.gap_ticks = 0;
    lane->last_ticks += (uint32_t)word;
    uint32_t id = what & CALL_ID;
    uint32_t trace_id = id < lane->ids_size ? lane->ids[id] : 0;
    bool call = (what & (CALL_RETURN | CALL_RESUME)) == 0;
    if (__builtin_expect(trace_id == 0, 0)) {
        uint64_t lost = lane->ids_lost;
        trace_id = id_new(lane, w, id);
        lane->ids_lost_calls += call && lane->ids_lost != lost;
        if (trace_id == 0)
            return;
    }
    uint64_t dt = sp_ticks_span(&lane->lanes->ticks, ticks);
    if (__builtin_expect(run.count == RUN_MAX || dt > GAP_MAX_NS, 0))
        run_flush(lane, w);
    uint32_t at = run.count++;
    if (at == 0) {
        run.t_ns = sp_ticks_at(&lane->lanes->ticks, lane->last_ticks);
        dt = 0;
    }
    run.calls += call;
    run.dt[at] = (uint32_t)dt;
    run.ids[at] = what & CALL_RETURN ? -(int32_t)trace_id : (int32_t)trace_id;
    if (what & CALL_RESUME)
        run.resumed[run.resumed_count++] = (uint16_t)at;
    if (what & CALL_RAISED)
        run.raised[run.raised_count++] = (uint16_t)at;
}

static void message_time(struct sp_lane *lane)
{
    uint64_t ticks = message.words[0];
    if (ticks > lane->last_ticks)
        run.gap_ticks += ticks - lane->last_ticks;
    lane->last_ticks = ticks;
}

static void message_thread(struct sp_lane *lane, struct sp_trace_writer *w)
{
    int32_t tid = (int32_t)message.words[0];
    run_flush(lane, w);
    lane->tid = tid > 0 ? tid : lane->pid;
}

static void message_text(struct sp_lane *lane, struct sp_trace_writer *w,
                         uint32_t words)
{
    uint64_t size = words ? message.words[0] : 0;
    if (words == 0 || size > (uint64_t)(words - 1) * sizeof(uint64_t)) {
        sp_lane_flaw(lane, w, SP_FLAW_MESSAGE);
        return;
    }
    sp_lane_text_add(lane->lanes, &lane->text, &message.words[1], size);
}

/* What the text itself says is not said again by the agent. */
static bool skip_text_fields(enum sp_field field, void *context)
{
    (void)context;
    return field == SP_FIELD_SIZE || field == SP_FIELD_START;
}

/* The text's own line, before the event that speaks of it. */
static bool tell_source(struct sp_lane *lane, struct sp_trace_writer *w,
                        const struct sp_claim *claim, uint64_t t_ns, pid_t tid,
                        struct sp_source *ret_source)
{
    sp_lane_text_close(&lane->text, ret_source);
    ret_source->file = sp_claim_text(claim, SP_FIELD_FILE, &ret_source->file_size);
    if (ret_source->file == NULL)
        ret_source->file = "";
    return !lane->text.kept.failed &&
           sp_sources_tell(&lane->lanes->sources, w, ret_source, SP_LAYER_PYTHON, t_ns,
                           lane->pid, tid);
}

/* Uses the copy in `message`. */
static void message_event(struct sp_lane *lane, struct sp_trace_writer *w,
                          uint32_t words)
{
    const struct sp_ring_event *head = &message.event;
    static struct sp_claim claim;
    size_t room = words * sizeof(uint64_t);
    if (room < sizeof *head || head->size > room - sizeof *head ||
        head->size > SP_CLAIM_BYTES_MAX || !sp_kind_from_ring(head->kind)) {
        sp_lane_flaw(lane, w, SP_FLAW_EVENT);
        return;
    }
    memcpy(claim.bytes, (const uint8_t *)message.words + sizeof *head, head->size);
    if (!sp_claim_parse(&claim, head->size)) {
        sp_lane_flaw(lane, w, SP_FLAW_EVENT);
        return;
    }
    bool text = (head->flags & SP_EVENT_TEXT) && lane->text.open;
    pid_t tid = (pid_t)head->tid;
    uint64_t t_ns = sp_ticks_at(&lane->lanes->ticks, head->ticks);
    struct sp_source source;
    run_flush(lane, w);
    tid = tid > 0 ? tid : lane->pid;
    bool kept = text && tell_source(lane, w, &claim, t_ns, tid, &source);
    sp_trace_begin(w, (enum sp_kind)head->kind, SP_LAYER_PYTHON, t_ns, lane->pid, tid);
    if (head->flags & SP_EVENT_NATIVE)
        sp_trace_string(w, "origin", "native");
    sp_claim_write(&claim, w, text ? skip_text_fields : NULL, NULL);
    if (text) {
        sp_lane_text_members(&lane->text, &source, kept, w);
        sp_lane_text_release(lane->lanes, &lane->text);
    }
    sp_trace_end(w);
}

/* `fold` is a copy. Calls that stand in the trace by themselves have their time here: a count of 0
 * is that of a pair that has no others. */
static void fold_write(struct sp_lane *lane, struct sp_trace_writer *w,
                       const struct sp_ring_fold *fold)
{
    static struct sp_name callee;
    static struct sp_name caller;
    if (fold->count == 0 && fold->resumes == 0 && fold->total == 0)
        return;
    if (fold->callee == 0 || !sp_name_read(lane, fold->callee, &callee) ||
        (fold->caller != 0 && !sp_name_read(lane, fold->caller, &caller))) {
        sp_lane_flaw(lane, w, SP_FLAW_FOLD);
        return;
    }
    const struct sp_ticks *ticks = &lane->lanes->ticks;
    sp_trace_begin(w, SP_KIND_CALL, SP_LAYER_PYTHON, sp_ticks_at(ticks, UINT64_MAX),
                   lane->pid, lane->pid);
    sp_trace_text(w, "function", callee.name, callee.name_size);
    if (fold->caller != 0)
        sp_trace_text(w, "caller", caller.name, caller.name_size);
    sp_trace_text(w, "file", callee.file, callee.file_size);
    sp_trace_uint(w, "line", callee.line);
    sp_trace_uint(w, "count", fold->count);
    sp_trace_uint(w, "total", sp_ticks_span(ticks, fold->total));
    sp_trace_uint(w, "self", sp_ticks_span(ticks, fold->self));
    if (fold->resumes)
        sp_trace_uint(w, "resumes", fold->resumes);
    sp_trace_calls(w, fold->count);
    sp_trace_end(w);
}

/* One call told by itself. A C function has no place of its own: the call's is given. */
static void message_call(struct sp_lane *lane, struct sp_trace_writer *w,
                         uint32_t words)
{
    static struct sp_name callee;
    static struct sp_name caller;
    struct sp_ring_call call = message.call;
    if (words != sizeof call / sizeof(uint64_t) ||
        !sp_name_read(lane, call.callee, &callee) ||
        (call.caller != 0 && !sp_name_read(lane, call.caller, &caller))) {
        sp_lane_flaw(lane, w, SP_FLAW_FUNCTION);
        return;
    }
    pid_t tid = (pid_t)call.tid;
    run_flush(lane, w);
    sp_trace_begin(w, SP_KIND_CALL, SP_LAYER_PYTHON,
                   sp_ticks_at(&lane->lanes->ticks, call.ticks), lane->pid,
                   tid > 0 ? tid : lane->pid);
    sp_trace_text(w, "function", callee.name, callee.name_size);
    if (call.caller != 0)
        sp_trace_text(w, "caller", caller.name, caller.name_size);
    if (callee.native && call.caller != 0)
        sp_trace_text(w, "file", caller.file, caller.file_size);
    else if (!callee.native)
        sp_trace_text(w, "file", callee.file, callee.file_size);
    uint32_t line = callee.native ? call.line : callee.line;
    if (line)
        sp_trace_uint(w, "line", line);
    sp_trace_uint(w, "depth", call.depth);
    if (callee.native)
        sp_trace_bool(w, "native", true);
    else
        sp_trace_calls(w, 1);
    sp_trace_end(w);
}

/* The agent's own word on an attempt; a guest that floods the trace with it is cut short. */
static void message_tamper(struct sp_lane *lane, struct sp_trace_writer *w,
                           uint32_t words)
{
    char text[SP_TAMPER_TEXT_MAX];
    size_t size = words * sizeof(uint64_t);
    if (size > sizeof text || lane->tampers == TAMPERS_MAX) {
        sp_lane_flaw(lane, w, SP_FLAW_EVENT);
        return;
    }
    lane->tampers++;
    memcpy(text, message.words, size);
    run_flush(lane, w);
    sp_trace_begin(w, SP_KIND_TAMPER, SP_LAYER_PYTHON,
                   sp_ticks_at(&lane->lanes->ticks, lane->last_ticks), lane->pid,
                   lane->tid);
    sp_trace_text(w, "what", text, strnlen(text, size));
    sp_trace_end(w);
}

static void message_fold(struct sp_lane *lane, struct sp_trace_writer *w,
                         uint32_t words)
{
    if (words != sizeof(struct sp_ring_fold) / sizeof(uint64_t)) {
        sp_lane_flaw(lane, w, SP_FLAW_FOLD);
        return;
    }
    run_flush(lane, w);
    fold_write(lane, w, &message.fold);
}

/* A loss that the guest tells of. Without a bound the sum of all could be made to wrap, down
 * to nothing. */
static void claim_lost(struct sp_trace_writer *w, uint64_t count, bool calls,
                       const char *reason)
{
    if (count > UINT32_MAX)
        count = UINT32_MAX;
    sp_trace_lost(w, count, calls ? count : 0, reason);
}

/* What the agent could not write, since it was last told. */
static void tell_lost(struct sp_lane *lane, struct sp_trace_writer *w)
{
    uint64_t lost = __atomic_load_n(&lane->ring->lost, __ATOMIC_RELAXED);
    if (lost > lane->lost_told)
        claim_lost(w, lost - lane->lost_told, false,
                   "events that found no room in a ring");
    lane->lost_told = lost;
}

static void message_decode(struct sp_lane *lane, struct sp_trace_writer *w,
                           uint32_t type, uint32_t words)
{
    switch (type) {
    case SP_MSG_TIME:
        if (words == 1)
            message_time(lane);
        break;
    case SP_MSG_THREAD:
        if (words == 2)
            message_thread(lane, w);
        break;
    case SP_MSG_EVENT:
        message_event(lane, w, words);
        break;
    case SP_MSG_TEXT:
        message_text(lane, w, words);
        break;
    case SP_MSG_FOLD:
        message_fold(lane, w, words);
        break;
    case SP_MSG_CALL:
        message_call(lane, w, words);
        break;
    case SP_MSG_TAMPER:
        message_tamper(lane, w, words);
        break;
    default:
        sp_lane_flaw(lane, w, SP_FLAW_MESSAGE);
    }
}

/* Copies the message whose first word lies at `tail`. False when it claims more words than were
 * published: nothing behind it can be trusted then. */
static bool message_copy(const uint64_t *from, uint64_t words_count, uint64_t tail,
                         uint64_t head, uint32_t words)
{
    if (words > SP_MESSAGE_WORDS_MAX || words > head - tail - 1)
        return false;
    uint64_t at = (tail + 1) & (words_count - 1);
    uint64_t first = words_count - at;
    if (first > words)
        first = words;
    sp_copy_out(message.words, from + at, first * sizeof *from);
    sp_copy_out(message.words + first, from, (words - first) * sizeof *from);
    return true;
}

/* The events in the side ring that were stamped before `ticks`. `head` is what was there when
 * the drain began. */
static void side_drain(struct sp_lane *lane, struct sp_trace_writer *w, uint64_t head,
                       uint64_t ticks)
{
    while (lane->side_tail < head) {
        uint64_t word = lane->ring->side[lane->side_tail & (SP_SIDE_WORDS - 1)];
        uint32_t words = (uint32_t)word & 0xffffff;
        if (word >> 24 != SP_MSG_EVENT || !message_copy(lane->ring->side, SP_SIDE_WORDS,
                                                        lane->side_tail, head, words)) {
            sp_lane_flaw(lane, w, SP_FLAW_MESSAGE);
            lane->side_tail = head;
            break;
        }
        if (words != 0 && message.event.ticks >= ticks)
            return;
        message_event(lane, w, words);
        lane->side_tail += 1 + words;
    }
    __atomic_store_n(&lane->ring->side_tail, lane->side_tail, __ATOMIC_RELEASE);
}

static uint64_t side_head(struct sp_lane *lane, struct sp_trace_writer *w)
{
    uint64_t head = __atomic_load_n(&lane->ring->side_head, __ATOMIC_ACQUIRE);
    if (head - lane->side_tail > SP_SIDE_WORDS) {
        sp_lane_flaw(lane, w, SP_FLAW_CURSOR);
        lane->side_tail = head;
    }
    return head;
}

/* Up to which moment what is in the side ring comes before the message. */
static uint64_t message_ticks(uint32_t type, uint32_t words)
{
    if (type == SP_MSG_EVENT)
        return message.event.ticks;
    if (type == SP_MSG_CALL)
        return message.call.ticks;
    return type == SP_MSG_THREAD && words == 2 ? message.words[1] : 0;
}

static void message_take(struct sp_lane *lane, struct sp_trace_writer *w, uint64_t head,
                         uint64_t side, uint64_t word)
{
    uint32_t type = (uint32_t)word >> 24;
    uint32_t words = (uint32_t)word & 0xffffff;
    const uint64_t *from = sp_lane_words(lane);
    if (!message_copy(from, lane->words_count, lane->tail, head, words)) {
        sp_lane_flaw(lane, w, SP_FLAW_MESSAGE);
        lane->tail = head;
        return;
    }
    uint64_t ticks = message_ticks(type, words);
    if (ticks != 0 && lane->side_tail < side) {
        side_drain(lane, w, side, ticks);
        message_copy(from, lane->words_count, lane->tail, head, words);
    }
    message_decode(lane, w, type, words);
    lane->tail += 1 + words;
}

static void tail_publish(struct sp_lane *lane)
{
    __atomic_store_n(&lane->ring->tail, lane->tail, __ATOMIC_RELEASE);
}

bool sp_lane_drain(struct sp_lane *lane, struct sp_trace_writer *w, size_t words_max)
{
    if (lane->finished)
        return false;
    const uint64_t *words = sp_lane_words(lane);
    uint64_t mask = lane->words_count - 1;
    uint64_t head = __atomic_load_n(&lane->ring->head, __ATOMIC_ACQUIRE);
    uint64_t side = side_head(lane, w);
    if (head == lane->tail && side == lane->side_tail)
        return false;
    sp_ticks_refresh(&lane->lanes->ticks);
    if (head - lane->tail > lane->words_count) {
        sp_lane_flaw(lane, w, SP_FLAW_CURSOR);
        lane->tail = head;
    }
    uint64_t end = head;
    if (words_max != 0 && head - lane->tail > words_max)
        end = lane->tail + words_max;
    uint64_t publish = lane->tail + CHUNK_WORDS;
    run.gap_ticks = 0;
    while (lane->tail < end) {
        uint64_t word = __atomic_load_n(&words[lane->tail & mask], __ATOMIC_RELAXED);
        if (word >> 32) {
            call_word(lane, w, word);
            lane->tail++;
        } else {
            message_take(lane, w, head, side, word);
        }
        if (lane->tail >= publish) {
            tail_publish(lane);
            publish = lane->tail + CHUNK_WORDS;
        }
    }
    run_flush(lane, w);
    side_drain(lane, w, side, UINT64_MAX);
    tell_lost(lane, w);
    tail_publish(lane);
    return __atomic_load_n(&lane->ring->head, __ATOMIC_RELAXED) != lane->tail;
}

void sp_lane_finish(struct sp_lane *lane, struct sp_trace_writer *w)
{
    if (lane->finished)
        return;
    sp_lane_drain(lane, w, 0);
    lane->finished = true;
    tell_lost(lane, w);
    sp_ticks_refresh(&lane->lanes->ticks);
    uint32_t used = __atomic_load_n(&lane->ring->folds_used, __ATOMIC_RELAXED);
    if (used > SP_FOLDS_MAX)
        used = SP_FOLDS_MAX;
    for (uint32_t i = 0; i < used; i++) {
        struct sp_ring_fold fold;
        sp_copy_out(&fold, &sp_lane_folds(lane)[i], sizeof fold);
        fold_write(lane, w, &fold);
    }
    uint64_t lost = __atomic_load_n(&lane->ring->fold_lost, __ATOMIC_RELAXED);
    if (lost)
        claim_lost(w, lost, true, "calls that found no room to be counted");
    lost = __atomic_load_n(&lane->ring->own_locks, __ATOMIC_RELAXED);
    if (lost)
        claim_lost(w, lost, false, "calls in subinterpreters with their own lock");
    if (lane->ids_lost)
        sp_trace_lost(w, lane->ids_lost, lane->ids_lost_calls,
                      "more functions in a run than their ids have room for");
}
