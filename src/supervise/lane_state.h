/* What a lane holds; shared by the files that make one up (lane, drain, names, act). */
#ifndef SP_SUPERVISE_LANE_STATE_H
#define SP_SUPERVISE_LANE_STATE_H

#include <string.h>

#include "supervise/lane.h"
#include "supervise/lane_text.h"

/* Copies out of shared memory, for good: the compiler may not look at the source again. */
static inline void sp_copy_out(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    __asm__ volatile("" ::: "memory");
}

/* Ways in which a ring can be malformed; each is told once a lane. */
enum sp_flaw {
    SP_FLAW_CURSOR,
    SP_FLAW_MESSAGE,
    SP_FLAW_EVENT,
    SP_FLAW_FUNCTION,
    SP_FLAW_FOLD,
    SP_FLAW_COUNT
};

struct sp_lane {
    struct sp_lanes *lanes;
    struct sp_ring *ring;
    size_t ring_bytes;
    uint64_t words_count;
    uint32_t number;
    pid_t pid;

    uint64_t tail;       /* our own cursor; the ring's copy is only for the agent */
    uint64_t side_tail;  /* of the side ring */
    uint64_t last_ticks; /* of the last word */
    pid_t tid;           /* whose words follow */

    uint32_t *ids; /* by the lane's id: the trace's id, 0 not yet given */
    uint32_t ids_size;
    uint64_t ids_lost;       /* words whose function found no place in `ids` */
    uint64_t ids_lost_calls; /* of them: calls, and no returns or resumes */
    uint64_t lost_told;      /* of what the agent says it could not write */

    struct sp_lane_text text; /* for the next event */

    bool finished;    /* nothing is written for it any more */
    uint32_t tampers; /* attempts that the agent told */
    uint32_t flaws;   /* set of enum sp_flaw already told */
    uint64_t flaws_count;
    uint32_t taken[SP_SLOTS]; /* serial of the act last taken from each slot */

    /* What we wrote into ring->denied: tid 0 where there is nothing (any more). */
    struct {
        pid_t tid;
        uint64_t time_ns;
    } denied[SP_DENIED_MAX];
    uint32_t denied_serial; /* of the last one */
    unsigned denied_count;
};

/* The parts of the mapping; places are ours, never the ring's word. */
const uint64_t *sp_lane_words(const struct sp_lane *lane);
const uint8_t *sp_lane_arena(const struct sp_lane *lane);
const struct sp_ring_fold *sp_lane_folds(const struct sp_lane *lane);

/* Counts a flaw and tells it the first time. */
void sp_lane_flaw(struct sp_lane *lane, struct sp_trace_writer *w, enum sp_flaw flaw);

/* A function as the arena describes it: copied. `id` is the lane's. */
struct sp_name {
    uint32_t line;
    bool native;
    uint16_t name_size;
    uint16_t module_size;
    uint16_t file_size;
    char name[SP_TEXT_MAX];
    char module[SP_TEXT_MAX];
    char file[SP_TEXT_MAX];
};
/* False when the arena holds no sound description; *ret_name is then "?". */
bool sp_name_read(const struct sp_lane *lane, uint32_t id, struct sp_name *ret_name);

/* The trace's id of the lane's function, given (and its `function` event written, stamped
 * t_ns) at first use; 0 when it has none and cannot get one. */
uint32_t sp_name_id(struct sp_lane *lane, struct sp_trace_writer *w, uint32_t id,
                    uint64_t t_ns);

/* Takes over what a forked child shares with its parent. */
void sp_name_inherit(struct sp_lane *lane, const struct sp_lane *parent);
void sp_name_release(struct sp_lane *lane);

#endif
