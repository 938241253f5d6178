#include "seal/limits/limit_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

void sp_limits_seal_add(struct sp_limits_seal *seal, int resource, uint64_t soft,
                        uint64_t hard)
{
    SP_BUG_ON(seal->rlimits_count == SP_RLIMITS_MAX);
    seal->rlimits[seal->rlimits_count].resource = resource;
    seal->rlimits[seal->rlimits_count].value = (struct rlimit){soft, hard};
    seal->rlimits_count++;
}

static int move_to(int group)
{
    int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = write(fd, "0", 1) == 1 ? 0 : -errno;
    close(fd);
    return result;
}

int sp_limits_enter(const struct sp_limits_seal *seal, bool grouped)
{
    /* By `tasks`, not `cgroup.procs`: one thread that moves itself needs no lock of the whole
     * machine, which takes milliseconds. */
    for (unsigned i = 0; i < SP_GROUPS_MAX; i++)
        if (seal->tasks[i] >= 0 && write(seal->tasks[i], "0", 1) != 1)
            return -errno;
    int result = seal->group >= 0 && !grouped ? move_to(seal->group) : 0;
    if (result != 0)
        return result;
    return seal->own_namespace ? sp_user_namespace_enter(&seal->space) : 0;
}

int sp_limits_apply(const struct sp_limits_seal *seal)
{
    for (unsigned i = 0; i < seal->rlimits_count; i++)
        if (setrlimit((__rlimit_resource_t)seal->rlimits[i].resource,
                      &seal->rlimits[i].value) != 0)
            return -errno;
    return 0;
}
