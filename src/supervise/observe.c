#include "supervise/observe.h"

/* Where the act was announced: its own process's lane, or its parent's. */
static struct sp_lane *announcing(const struct sp_act_call *call)
{
    struct sp_process *process = call->process;
    if (process->lane == NULL)
        process = sp_processes_find(&call->s->processes, process->parent);
    return process != NULL ? process->lane : NULL;
}

struct sp_answer sp_observe(struct sp_act_call *call,
                            struct sp_answer (*decide)(struct sp_act_call *call))
{
    struct sp_supervisor *s = call->s;
    struct sp_lane_mark mark;
    if (s->observed == NULL)
        return decide(call);
    const struct sp_policy *in_force = s->policy;
    struct sp_lane *lane = announcing(call);
    if (lane != NULL)
        sp_lane_mark(lane, &mark);
    s->policy = s->observed;
    call->observing = true;
    struct sp_answer answer = decide(call);
    s->policy = in_force;
    call->observing = false;
    if (!call->observed)
        return answer;
    /* The second time finds what the agent announced as the first one did. */
    if (lane != NULL)
        sp_lane_back(lane, &mark);
    call->denied = false;
    call->sentence = NULL;
    return decide(call);
}
