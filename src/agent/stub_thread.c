/* New threads: before CPython 3.12 nothing else tells of one that _thread starts. And the end of
 * the process by exit(), which returning from main() does not go through. */
#include "agent/stub_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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

SP_EXPORT _Noreturn void exit(int code)
{
    SP_REAL(exit);
    if (sp_stub.exits)
        sp_stub.exits();
    if (real)
        real(code);
    _exit(code);
}
