/* The child's half of a launch: async-signal-safe, one stage after the other. */
#ifndef SP_LAUNCH_LAUNCH_CHILD_H
#define SP_LAUNCH_LAUNCH_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "launch/launch.h"

/* A page that child and supervisor share. */
struct sp_launch_report {
    int32_t listener; /* SP_LISTENER_PENDING, then the number, -1 for none; a futex */
    int32_t stage;    /* of the failure; SP_STAGE_COUNT: none */
    int32_t err;
    int32_t grouped; /* it was started in its control group (version 2) */
};
#define SP_LISTENER_PENDING (-1000)

_Noreturn void sp_launch_child(const struct sp_launch *launch, pid_t supervisor,
                               struct sp_launch_report *report);

#endif
