/* New threads: of those that a library starts nothing else tells. And the end of
 * the process by exit(), which returning from main() does not go through. */
#include "agent/stub_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* What the agent's hooks need of a thread's stack at the most, beside what the program asked
 * for: a thread whose stack is chosen to fit would overflow. */
#define STACK_EXTRA (1u << 20)

/* A copy of the attributes with a larger stack. NULL: they are to be used as they are, since
 * the program brings the stack itself or they cannot be copied. */
static const pthread_attr_t *with_room(const pthread_attr_t *attr,
                                       pthread_attr_t *ret_copy)
{
    SP_REAL(pthread_attr_getstack);
    static void *cache;
    int (*set)(pthread_attr_t *, size_t) =
        (int (*)(pthread_attr_t *, size_t))sp_stub_real(&cache,
                                                        "pthread_attr_setstacksize");
    void *address = NULL;
    size_t size = 0;
    if (!real || !set || real(attr, &address, &size) != 0)
        return NULL;
    /* Without a stack of the program's own the address is the end of an empty one, minus the
     * size. */
    if ((char *)address + size != NULL)
        return NULL;
    *ret_copy = *attr;
    return set(ret_copy, size + STACK_EXTRA) == 0 ? ret_copy : NULL;
}

/* What a new thread is to do, and to tell before. */
struct beginning {
    void *(*start)(void *);
    void *argument;
    void *made;
};

static void *begin(void *given)
{
    struct beginning beginning = *(struct beginning *)given;
    free(given);
    sp_stub.thread_begins(beginning.made);
    return beginning.start(beginning.argument);
}

static struct beginning *beginning_new(void *(*start)(void *), void *argument,
                                       void *made)
{
    struct beginning *beginning = made ? malloc(sizeof *beginning) : NULL;
    if (beginning)
        *beginning =
            (struct beginning){.start = start, .argument = argument, .made = made};
    return beginning;
}

SP_EXPORT int pthread_create(pthread_t *restrict thread,
                             const pthread_attr_t *restrict attr,
                             void *(*start)(void *), void *restrict argument)
{
    SP_REAL(pthread_create);
    if (!real)
        return EAGAIN;
    if (!sp_stub.thread_made)
        return real(thread, attr, start, argument);
    pthread_attr_t copy;
    void *made = sp_stub.thread_made();
    const pthread_attr_t *larger = attr ? with_room(attr, &copy) : NULL;
    attr = larger ? larger : attr;
    struct beginning *beginning = beginning_new(start, argument, made);
    int result = beginning ? real(thread, attr, begin, beginning)
                           : real(thread, attr, start, argument);
    if (made && (result != 0 || !beginning)) {
        sp_stub.thread_failed(made);
        free(beginning);
    }
    return result;
}

/* An interpreter keeps its state of the thread by this, as soon as there is one: also for a
 * thread of a library's that calls into Python. */
SP_EXPORT int pthread_setspecific(pthread_key_t key, const void *value)
{
    SP_REAL(pthread_setspecific);
    if (sp_stub.thread_keeps)
        sp_stub.thread_keeps(key, (void *)(uintptr_t)value);
    return real ? real(key, value) : EINVAL;
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
