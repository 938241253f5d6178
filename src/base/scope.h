/* Scope cleanup: the variable frees what it holds when it goes out of scope; ownership
 * leaves only through a steal. Every such variable is initialised at its declaration.
 */
#ifndef SP_BASE_SCOPE_H
#define SP_BASE_SCOPE_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void sp_scope_close(const int *fd)
{
    if (*fd >= 0) {
        int err = errno;
        close(*fd);
        errno = err;
    }
}

static inline void sp_scope_free(void *p)
{
    int err = errno;
    free(*(void **)p);
    errno = err;
}

#define sp_auto_fd   __attribute__((cleanup(sp_scope_close))) int
#define sp_auto_free __attribute__((cleanup(sp_scope_free)))

static inline int sp_steal_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

static inline void sp_close_fd(int *fd)
{
    sp_scope_close(fd);
    *fd = -1;
}

#endif
