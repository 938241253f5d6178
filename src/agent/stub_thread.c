/* New threads: before CPython 3.12 nothing else tells of one that _thread starts. */
#include "agent/stub_private.h"

#include <errno.h>
#include <pthread.h>

SP_EXPORT int pthread_create(pthread_t *restrict thread,
                             const pthread_attr_t *restrict attr,
                             void *(*start)(void *), void *restrict argument)
{
    SP_REAL(pthread_create);
    if (!real)
        return EAGAIN;
    if (sp_stub.thread_made)
        sp_stub.thread_made();
    return real(thread, attr, start, argument);
}
