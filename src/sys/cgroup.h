/* A control group of our own below the one that we are in: what the kernel counts for a whole
 * tree of processes, whoever they are and whatever they do.
 *
 * Version 1 has a tree of groups for each controller, version 2 one for all. The group is made
 * by the keeper, which removes it when nobody is left in it; the guest's first process enters it
 * by itself, while it is still ours.
 */
#ifndef SP_SYS_CGROUP_H
#define SP_SYS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SP_CGROUP_PATH_MAX 768

enum sp_cgroup_controller {
    SP_CGROUP_MEMORY,
    SP_CGROUP_PIDS,
};

struct sp_cgroup {
    char folder[SP_CGROUP_PATH_MAX];
    enum sp_cgroup_controller controller;
    bool unified; /* version 2 */
    int enter;    /* version 1: its `tasks`; version 2: its folder; -1: none */
    int events;   /* where it tells how often the limit was hit */
    int peak;     /* the most that was used; -1: it does not tell */
};

#define SP_CGROUP_NONE ((struct sp_cgroup){.enter = -1, .events = -1, .peak = -1})

/* Where groups are found; a test has its own. NULL: the system's. */
struct sp_cgroup_places {
    const char *list;  /* /proc/self/cgroup */
    const char *mount; /* /sys/fs/cgroup */
};

/* A name that tells whose it is. */
void sp_cgroup_name(char *to, size_t size);

/* Makes the group `name` with that limit. -1 with errno when it cannot be had here; *ret_value
 * is the limit in force, lower when a group around ours has a lower one. */
int sp_cgroup_make(const struct sp_cgroup_places *places,
                   enum sp_cgroup_controller controller, const char *name,
                   uint64_t value, struct sp_cgroup *ret_group, uint64_t *ret_value)
    SP_MUST_CHECK;

/* How often something was refused, or a process ended, because of the limit. */
uint64_t sp_cgroup_hits(const struct sp_cgroup *group);
/* Bytes, or processes, at most so far; 0: not known. */
uint64_t sp_cgroup_peak(const struct sp_cgroup *group);

void sp_cgroup_close(struct sp_cgroup *group);
/* Once nobody is in it. */
void sp_cgroup_remove(const struct sp_cgroup *group);

#endif
