/* One guest process's ring, seen from the supervisor: made, handed out, drained into the
 * trace, and read for what the agent claims about the next act.
 *
 * Theory of operation: src/ring/ring.h. Everything in a ring may have been written by hostile
 * code. Each value is copied once, bounded, then used; nothing here waits for the guest, and
 * no amount of work depends on more than the words that were there when a call began. What
 * is malformed is skipped and counted; each way of being malformed gives at most one `tamper`
 * event a lane.
 *
 *     struct sp_lanes lanes;                        one a run
 *     sp_lanes_init(&lanes, start_ns, calls, config, config_size);
 *     sp_lane_new(&lanes, number, pid, NULL, &lane, &fd, err);   at SP_CALL_HELLO
 *     sp_lane_drain(lane, writer, 0);               at kicks, on a timer, before events
 *     sp_lane_finish(lane, writer);                 at exit or exec
 *     sp_lane_free(lane);
 */
#ifndef SP_SUPERVISE_LANE_H
#define SP_SUPERVISE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "event/event.h"
#include "ring/ring.h"
#include "supervise/claim.h"
#include "supervise/sources.h"
#include "supervise/ticks.h"

struct sp_trace_writer;
struct sp_lane;

/* What the lanes of one run share. */
struct sp_lanes {
    struct sp_ticks ticks;
    enum sp_calls_level calls;
    const void *config; /* borrowed for the run: struct sp_ring_config and its texts */
    uint32_t config_size;
    uint32_t function_last; /* function ids of the trace given out so far */
    uint64_t memory_bytes;  /* held by all id maps together */
    uint64_t memory_max_bytes;
    struct sp_sources sources;
    uint64_t texts_bytes; /* held by all texts that are still coming */
};

/* start_ns: sp_clock_ns() at which the trace's `t` is 0. config must outlive the run and be at
 * most SP_CONFIG_BYTES. */
void sp_lanes_init(struct sp_lanes *lanes, uint64_t start_ns, enum sp_calls_level calls,
                   const void *config, size_t config_size);
void sp_lanes_release(struct sp_lanes *lanes); /* once all lanes are freed */

/* Makes the ring of process `pid`: a sealed memfd with the configuration in it, mapped.
 * `parent` is the lane of the process it was forked from (its functions keep their ids in
 * the trace), NULL for a fresh image. *ret_fd is to be injected into the guest and then closed
 * by the caller; `lanes` is borrowed for the lane's life. */
int sp_lane_new(struct sp_lanes *lanes, uint32_t number, pid_t pid,
                const struct sp_lane *parent, struct sp_lane **ret_lane, int *ret_fd,
                struct sp_error *reterr) SP_MUST_CHECK;
void sp_lane_free(struct sp_lane *lane); /* NULL accepted */

uint32_t sp_lane_number(const struct sp_lane *lane);
pid_t sp_lane_pid(const struct sp_lane *lane);

/* Whether the program itself has begun in this process (a claim). */
bool sp_lane_started(const struct sp_lane *lane);

/* How the interpreter came to its end (a claim; another value counts as NOT). */
enum sp_ended sp_lane_ended(const struct sp_lane *lane);

/* Writes what is in the ring as events: at most `words_max` words (0: all that were there when
 * the call began). Returns true when more is left. */
bool sp_lane_drain(struct sp_lane *lane, struct sp_trace_writer *w, size_t words_max);

/* The process has ended or becomes another program: drains, then writes the counts of the
 * folded calls. Nothing is written for the lane afterwards. */
void sp_lane_finish(struct sp_lane *lane, struct sp_trace_writer *w);

/* The newest act of that class which thread `tid` (0: any) announced and which was not yet
 * taken.
 * It is taken by this call, but for SP_ACT_LOOKUP, which stands until sp_lane_lookup_end().
 * False when there is none; *ret_claim is then untouched. */
bool sp_lane_act(struct sp_lane *lane, pid_t tid, enum sp_act act,
                 struct sp_claim *ret_claim);

/* Which announcements were taken so far, and back to that: for a call that is decided twice. */
struct sp_lane_mark {
    uint32_t taken[SP_SLOTS];
};
void sp_lane_mark(const struct sp_lane *lane, struct sp_lane_mark *ret_mark);
void sp_lane_back(struct sp_lane *lane, const struct sp_lane_mark *mark);

/* The lookup in slot `slot` is over (SP_CALL_LOOKUP): its claim, once. False when the slot
 * holds none of that thread. */
bool sp_lane_lookup_end(struct sp_lane *lane, pid_t tid, uint64_t slot,
                        struct sp_claim *ret_claim);

/* The text for a denied lookup, into its slot's body; before the call is answered. */
void sp_lane_lookup_answer(struct sp_lane *lane, uint64_t slot, const char *text);

/* The question in the ask area (SP_CALL_ASK). False when it is malformed: deny then. */
bool sp_lane_question(struct sp_lane *lane, enum sp_kind *ret_kind,
                      struct sp_claim *ret_claim);
/* The answer's text, cut to what the area holds; before the call is answered. */
void sp_lane_answer(struct sp_lane *lane, const char *text);

/* For the exception that thread `tid` is about to raise for `err`: the sentence that tells why its
 * call was refused; before the call is answered. `spot`: where that thread is
 * (sp_frames_spot()); SP_SPOT_CHILD: the call was of a child that it made. Replaces what was
 * there for that thread. (sentence.c) */
#define SP_SPOT_CHILD UINT64_MAX
void sp_lane_deny(struct sp_lane *lane, pid_t tid, int err, uint64_t spot,
                  const char *sentence);
/* Another call of the thread was not denied: what was there for it is out of date. */
void sp_lane_undeny(struct sp_lane *lane, pid_t tid);

/* Where the interpreter's frames lie (a copy of what the agent published); false when it
 * published nothing. For sp_frames_walk(). */
bool sp_lane_frames(const struct sp_lane *lane, struct sp_ring_frames *ret_frames);

#endif
