/* Writing to this process's lane: call words, messages, acts about to happen, questions.
 *
 * Thread rule. The ring proper has one writer at a time: whoever holds the main
 * interpreter's GIL (sp_lane_owned()). Everyone else (libc functions interposed while the
 * GIL is released, interpreters with a GIL of their own) writes events to the `side` ring
 * under a lock of ours; sp_lane_event() picks the right one.
 *
 * Fork rule. The hot fields lie in a page that the kernel zeroes in a forked child
 * (MADV_WIPEONFORK). There `head` equals `limit`, so that the slow path is taken by itself;
 * it gets the child a lane of its own. A vfork child shares the parent's memory and must
 * never come here: callers that can run in one compare getpid() (see native.c).
 */
#ifndef SP_AGENT_LANE_H
#define SP_AGENT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "event/event.h"
#include "ring/ring.h"

#define SP_LANE_PAGE 4096

/* In the wiped page: all zero in a forked child and before the start. */
struct sp_lane_hot {
    struct sp_ring *ring; /* NULL: none (yet) in this process */
    uint64_t *words;
    uint64_t mask;
    uint64_t head;       /* words written so far */
    uint64_t limit;      /* up to where we may write without looking at `tail` */
    uint64_t last_ticks; /* of the last call word or TIME message */
    uint32_t last_tid;   /* of the last THREAD message */
    uint32_t kicked; /* 1: KICK was sent since the ring was last less than half full */
    uint32_t side_holder; /* thread that holds the lock of side.h */
    uint32_t serial;      /* of the last act announced */
    uint32_t pid;         /* whose lane it is */
};

extern union sp_lane_page {
    struct sp_lane_hot hot;
    char page[SP_LANE_PAGE];
} sp_lane_page __attribute__((aligned(SP_LANE_PAGE)));
#define sp_lane (sp_lane_page.hot)

/* The calling thread's kernel id. */
extern __thread uint32_t sp_lane_thread;
uint32_t sp_lane_thread_learn(void);
static inline uint32_t sp_lane_tid(void)
{
    uint32_t tid = sp_lane_thread;
    return __builtin_expect(tid != 0, 1) ? tid : sp_lane_thread_learn();
}

/* Maps the ring behind `fd` and takes the configuration out of it. 0, or -1 when it is not
 * a ring of ours (the process then goes on without). Closes fd. */
int sp_lane_open(int fd);

/* Whether this process has a lane; gets a forked child its own. GIL of the main
 * interpreter held. */
bool sp_lane_ready_slowly(void);
static inline bool sp_lane_ready(void)
{
    return __builtin_expect(sp_lane.ring != NULL, 1) || sp_lane_ready_slowly();
}

/* Whether the calling thread holds the main interpreter's GIL. */
bool sp_lane_owned(void);

/* ---- call words: main GIL held ---------------------------------------------------------- */

#define SP_WORD_RETURN 0x80000000u
#define SP_WORD_RESUME 0x40000000u /* of a call; of a return: the generator yielded */
#define SP_WORD_RAISED 0x20000000u

/* Makes room, says which thread and what time it is; false: no lane, or nobody reads. */
bool sp_lane_prepare(uint64_t now);

/* One call or return: function id and SP_WORD_* bits. Published at once, so that what the
 * kernel shows the supervisor next finds it there. False: not recorded (count it). */
static inline bool sp_lane_word(uint32_t what)
{
    uint64_t now = sp_clock_ticks();
    uint64_t delta = now - sp_lane.last_ticks;
    if (__builtin_expect(sp_lane.head == sp_lane.limit || delta > UINT32_MAX ||
                             sp_lane.last_tid != sp_lane_thread,
                         0)) {
        if (!sp_lane_prepare(now))
            return false;
        delta = now - sp_lane.last_ticks;
    }
    sp_lane.words[sp_lane.head & sp_lane.mask] = (uint64_t)what << 32 | delta;
    sp_lane.last_ticks = now;
    sp_lane.head++;
    __atomic_store_n(&sp_lane.ring->head, sp_lane.head, __ATOMIC_RELEASE);
    return true;
}

/* A message of `size` bytes, padded with zeros to a word; waits for room. Main GIL held.
 * False: not recorded; and counted as that, but for calls and counts of calls. */
bool sp_lane_message(enum sp_message type, const void *data, size_t size);

/* Counts something that could not be written. Any thread. */
void sp_lane_lost(void);

/* ---- functions: main GIL held -------------------------------------------------------------- */

struct sp_lane_function {
    uint32_t line;
    bool native;
    bool reviewed;
    const char *name; /* qualified */
    size_t name_size;
    const char *module;
    size_t module_size;
    const char *file;
    size_t file_size;
};

/* Gives the function the next id; 0 when the arena or the table is full. Long texts are
 * cut. Ids stay valid in a forked child. */
uint32_t sp_lane_function_add(const struct sp_lane_function *function);

/* ---- events: any thread -------------------------------------------------------------------- */

/* An event under construction: the body of an EVENT message, a slot or a question. */
struct sp_lane_record {
    struct sp_ring_event event; /* event.size is kept up to date */
    uint8_t fields[SP_ASK_BYTES - sizeof(struct sp_ring_event)];
};

void sp_record_begin(struct sp_lane_record *r, enum sp_kind kind);
void sp_record_text(struct sp_lane_record *r, enum sp_field field, const char *text,
                    size_t size); /* cut to SP_TEXT_MAX and to what is left */
void sp_record_string(struct sp_lane_record *r, enum sp_field field, const char *text);
void sp_record_int(struct sp_lane_record *r, enum sp_field field, int64_t value);

/* The one record that holders of a GIL may build in, so that no hook needs 8 KiB of
 * a stack that may be nearly used up. In the caller's turn (turn.h); between begin and use no
 * Python code may run. */
extern struct sp_lane_record sp_lane_scratch;

/* Writes the event to the ring, or to the side ring when the main GIL is not held. */
bool sp_lane_event(struct sp_lane_record *r);

/* Sends source text; the next event is to be marked SP_EVENT_TEXT. Main GIL held. */
bool sp_lane_text(const char *text, size_t size);

/* Announces an act of this thread; the fields are cut to what a slot holds. Replaces what
 * this thread announced before. Returns the slot's number, -1 when there is none free. */
int sp_lane_announce(enum sp_act act, const struct sp_lane_record *r);
void sp_lane_withdraw(int slot); /* -1 accepted */

/* Asks the supervisor about the act in `r`, in the caller's turn (turn.h). 0: allowed; 1: denied, and `answer` holds the
 * sentence to raise with. Without a supervisor: allowed. */
#define SP_ANSWER_BYTES 2048u
int sp_lane_ask(const struct sp_lane_record *r, char answer[SP_ANSWER_BYTES]);

#endif
