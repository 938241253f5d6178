/* Puts the calling process under a compiled filter. */
#include "seal/seccomp/load.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seal/seccomp/filter.h"

#define FLAG_NEW_LISTENER  8u
#define FLAG_WAIT_KILLABLE 32u

static int load(const struct sp_filter *filter, unsigned flags)
{
    struct sock_fprog program = {filter->count, (struct sock_filter *)filter->code};
    long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return rc < 0 ? -errno : (int)rc;
}

int sp_filter_load(const struct sp_filter *filter)
{
    int listener = load(filter, FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE);
    /* COMPAT(kernel 5.19): without the flag any signal breaks off a call before its
     * answer. */
    if (listener == -EINVAL)
        listener = load(filter, FLAG_NEW_LISTENER);
    return listener;
}

int sp_filter_load_without_listener(const struct sp_filter *filter)
{
    return load(filter, 0);
}
