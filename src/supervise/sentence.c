#include "supervise/sentence.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "ring/ring.h"
#include "supervise/frames.h"
#include "supervise/lane_state.h"
#include "supervise/record.h"
#include "sys/tree.h"

const char *sp_sentence_make(const struct sp_explanation *explanation,
                             const struct sp_place *place)
{
    static char sentence[SP_SENTENCE_BYTES];
    char at[sizeof place->file + 16] = "";
    if (place->known)
        snprintf(at, sizeof at, ", %s:%d", place->file, place->line);
    snprintf(sentence, sizeof sentence, "%s%s; %s", explanation->message, at,
             explanation->hint);
    return sentence;
}

_Static_assert(SP_SENTENCE_BYTES > sizeof(struct sp_explanation) +
                                       sizeof(((struct sp_place *)0)->file) + 16,
               "what would allow it is never cut off");

/* ---- whom it is for ---------------------------------------------------------------------- */

struct hearer {
    struct sp_lane *lane; /* NULL: nobody */
    pid_t tid;
    uint64_t spot;
};

static bool is_exec(int nr)
{
    return nr == SYS_execve || nr == SYS_execveat;
}

static void tell(const struct sp_act_call *call, const struct hearer *hearer, int err)
{
    if (hearer->lane != NULL)
        sp_lane_deny(hearer->lane, hearer->tid, err, hearer->spot, call->sentence);
}

static void tell_caller(const struct sp_act_call *call, int err)
{
    struct sp_process *process = call->process;
    struct hearer hearer = {.lane = process->lane, .tid = (pid_t)call->n->pid};
    struct sp_ring_frames layout;
    if (hearer.lane != NULL && sp_lane_frames(hearer.lane, &layout))
        hearer.spot = sp_frames_spot(&layout, process->pid, hearer.tid);
    tell(call, &hearer, err);
}

static bool is(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

/* Whether thread `tid` waits to hear how its child fared: not if it made a plain fork, whose outcome
 * is the child's own affair. Without an announcement it is taken to wait for a child that runs no
 * Python (and so has no lane). */
static bool waits(struct sp_lane *lane, pid_t tid, bool runs_python)
{
    static struct sp_claim claim;
    static const struct sp_lane_mark none;
    struct sp_lane_mark now;
    size_t size;
    sp_lane_mark(lane, &now);
    sp_lane_back(lane, &none); /* it was taken by now, as it may be */
    bool announced = sp_lane_act(lane, tid, SP_ACT_PROCESS, &claim);
    sp_lane_back(lane, &now);
    if (!announced)
        return !runs_python;
    const char *op = sp_claim_text(&claim, SP_FIELD_OP, &size);
    return op == NULL || !(is(op, size, "fork") || is(op, size, "forkpty"));
}

/* When a child that is still its parent's image could not become another program: the thread that
 * made it and waits to hear of it (subprocess, posix_spawn). */
static void tell_maker(const struct sp_act_call *call, int err)
{
    struct sp_process *process = call->process;
    struct sp_process *parent =
        process->replaced ? NULL
                          : sp_processes_find(&call->s->processes, process->parent);
    if (!is_exec(call->n->data.nr) || parent == NULL || parent->lane == NULL)
        return;
    struct hearer hearer = {.tid = sp_tree_maker(parent->pid, process->pid),
                            .spot = SP_SPOT_CHILD};
    if (hearer.tid != 0 && waits(parent->lane, hearer.tid, process->lane != NULL))
        hearer.lane = parent->lane;
    tell(call, &hearer, err);
}

void sp_sentence_settle(const struct sp_act_call *call, const struct sp_answer *answer)
{
    int nr = call->n->data.nr;
    if (call->denied && call->sentence != NULL && answer->kind == SP_ANSWER_REFUSE) {
        tell_caller(call, (int)answer->value);
        tell_maker(call, (int)answer->value);
        return;
    }
    /* The agent may call at any time, and a search along PATH goes on after a denial: of all its
     * errnos the denial's is the one that is told. */
    if (call->process->lane != NULL && nr != SP_CALL_NR && !is_exec(nr) && !call->again)
        sp_lane_undeny(call->process->lane, (pid_t)call->n->pid);
}

/* ---- in the lane --------------------------------------------------------------------------- */

/* The place of thread `tid`, else a free one, else that of the oldest. */
static unsigned place_for(const struct sp_lane *lane, pid_t tid)
{
    unsigned best = 0;
    for (unsigned i = 0; i < SP_DENIED_MAX; i++) {
        if (lane->denied[i].tid == tid)
            return i;
        if (lane->denied[i].time_ns < lane->denied[best].time_ns)
            best = i;
    }
    return best;
}

void sp_lane_deny(struct sp_lane *lane, pid_t tid, int err, uint64_t spot,
                  const char *sentence)
{
    unsigned i = place_for(lane, tid);
    struct sp_ring_denied *told = &lane->ring->denied[i];
    if (lane->denied[i].tid == 0)
        lane->denied_count++;
    lane->denied[i].tid = tid;
    lane->denied[i].time_ns = sp_clock_ns();
    uint32_t serial = lane->denied_serial += 2;
    __atomic_store_n(&told->serial, serial - 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    told->tid = (uint32_t)tid;
    told->err = err;
    told->child = spot == SP_SPOT_CHILD;
    told->spot = spot;
    told->time_ns = lane->denied[i].time_ns;
    size_t size = strnlen(sentence, sizeof told->text - 1);
    memcpy(told->text, sentence, size);
    told->text[size] = '\0';
    __atomic_store_n(&told->serial, serial, __ATOMIC_RELEASE);
    __atomic_fetch_or(&lane->ring->denied_set, 1u << i, __ATOMIC_RELEASE);
}

void sp_lane_undeny(struct sp_lane *lane, pid_t tid)
{
    for (unsigned i = 0; lane->denied_count > 0 && i < SP_DENIED_MAX; i++) {
        if (lane->denied[i].tid != tid)
            continue;
        lane->denied_count--;
        lane->denied[i].tid = 0;
        lane->denied[i].time_ns = 0;
        __atomic_store_n(&lane->ring->denied[i].serial, 0, __ATOMIC_RELEASE);
        __atomic_fetch_and(&lane->ring->denied_set, ~(1u << i), __ATOMIC_RELEASE);
    }
}
