/* exec and its kin, so that a child with an environment of its own making is traced too.
 *
 * Most of these run in a vfork child, on its parent's memory: no allocation, nothing written
 * but the stack. An environment too large for that is passed on as it is: the child then
 * goes on confined, and the trace says that it has no agent.
 */
#include "agent/stub_private.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define FEW           250  /* entries: 2 KiB of stack */
#define MANY          4000 /* 32 KiB */
#define ARGUMENTS_MAX 1000
#define VARIABLE      "LD_PRELOAD="
#define VARIABLE_SIZE (sizeof VARIABLE - 1)

enum state {
    STATE_COMPLETE, /* ours is in it, or there is none to add */
    STATE_LACKING,
};

static enum state look(char *const *environment, size_t *ret_count)
{
    size_t count = 0;
    int complete = sp_stub_preload_size == 0;
    size_t ours = strcspn(sp_stub_preload, ": ");
    for (; environment && environment[count]; count++)
        if (strncmp(environment[count], sp_stub_preload, ours) == 0 &&
            strchr(": ", environment[count][ours]))
            complete = 1;
    *ret_count = count;
    return complete ? STATE_COMPLETE : STATE_LACKING;
}

/* Copies the entries and adds ours, in front of a value of the caller's: `joined` holds the
 * two then. False: no room. */
static int complete(char *const *environment, size_t count, char **copy,
                    char joined[SP_PRELOAD_BYTES])
{
    const char *ours = sp_stub_preload;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environment[i], VARIABLE, VARIABLE_SIZE) != 0) {
            copy[at++] = environment[i];
            continue;
        }
        size_t own = strcspn(sp_stub_preload, ": ");
        size_t theirs = strlen(environment[i] + VARIABLE_SIZE);
        if (own + 1 + theirs + 1 > SP_PRELOAD_BYTES)
            return 0;
        memcpy(joined, sp_stub_preload, own);
        joined[own] = ':';
        memcpy(joined + own + 1, environment[i] + VARIABLE_SIZE, theirs + 1);
        ours = joined;
    }
    copy[at++] = (char *)ours;
    copy[at] = NULL;
    return 1;
}

/* One call with an environment, whatever function it is in the end. */
struct launch {
    int (*run)(const struct launch *launch, char *const *environment);
    void *real;
    int fd;
    int flags;
    const char *path;
    char *const *argv;
    pid_t *pid;
    const void *actions;
    const void *attributes;
};

static __attribute__((noinline)) int run_few(const struct launch *launch,
                                             char *const *environment, size_t count)
{
    char *copy[FEW + 2];
    char joined[SP_PRELOAD_BYTES];
    return launch->run(launch,
                       complete(environment, count, copy, joined) ? copy : environment);
}

static __attribute__((noinline)) int run_many(const struct launch *launch,
                                              char *const *environment, size_t count)
{
    char *copy[MANY + 2];
    char joined[SP_PRELOAD_BYTES];
    return launch->run(launch,
                       complete(environment, count, copy, joined) ? copy : environment);
}

static int run(struct launch launch, char *const *environment)
{
    size_t count;
    if (!launch.real) {
        errno = ENOSYS;
        return -1;
    }
    if (look(environment, &count) == STATE_COMPLETE || count > MANY)
        return launch.run(&launch, environment);
    return count <= FEW ? run_few(&launch, environment, count)
                        : run_many(&launch, environment, count);
}

/* ---- exec -------------------------------------------------------------------------------- */

static int run_execve(const struct launch *l, char *const *environment)
{
    return ((__typeof__(execve) *)l->real)(l->path, l->argv, environment);
}

static int run_fexecve(const struct launch *l, char *const *environment)
{
    return ((__typeof__(fexecve) *)l->real)(l->fd, l->argv, environment);
}

static int run_execveat(const struct launch *l, char *const *environment)
{
    int (*real)(int, const char *, char *const *, char *const *, int) = l->real;
    return real(l->fd, l->path, l->argv, environment, l->flags);
}

SP_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    SP_REAL(execve);
    return run(
        (struct launch){.run = run_execve, .real = real, .path = path, .argv = argv},
        envp);
}

SP_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    SP_REAL(execvpe);
    return run(
        (struct launch){.run = run_execve, .real = real, .path = file, .argv = argv},
        envp);
}

SP_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    SP_REAL(fexecve);
    return run(
        (struct launch){.run = run_fexecve, .real = real, .fd = fd, .argv = argv},
        envp);
}

int execveat(int dir, const char *path, char *const argv[], char *const envp[],
             int flags);
SP_EXPORT int execveat(int dir, const char *path, char *const argv[],
                       char *const envp[], int flags)
{
    SP_REAL(execveat);
    return run((struct launch){.run = run_execveat,
                               .real = real,
                               .fd = dir,
                               .path = path,
                               .argv = argv,
                               .flags = flags},
               envp);
}

SP_EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

SP_EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* The arguments of execl and its kin as an array, and what follows them. */
#define LIST_OF(first, argv, more)                                                     \
    char *argv[ARGUMENTS_MAX + 1];                                                     \
    va_list more;                                                                      \
    va_start(more, first);                                                             \
    size_t argc_ = 0;                                                                  \
    argv[0] = (char *)first;                                                           \
    while (argv[argc_] && ++argc_ <= ARGUMENTS_MAX)                                    \
        argv[argc_] = va_arg(more, char *);                                            \
    if (argc_ > ARGUMENTS_MAX) {                                                       \
        va_end(more);                                                                  \
        errno = E2BIG;                                                                 \
        return -1;                                                                     \
    }

SP_EXPORT int execl(const char *path, const char *first, ...)
{
    LIST_OF(first, argv, more)
    va_end(more);
    return execve(path, argv, environ);
}

SP_EXPORT int execlp(const char *file, const char *first, ...)
{
    LIST_OF(first, argv, more)
    va_end(more);
    return execvpe(file, argv, environ);
}

SP_EXPORT int execle(const char *path, const char *first, ...)
{
    LIST_OF(first, argv, more)
    char *const *envp = va_arg(more, char *const *);
    va_end(more);
    return execve(path, argv, envp);
}

/* ---- spawn --------------------------------------------------------------------------------- */

static int run_spawn(const struct launch *l, char *const *environment)
{
    return ((__typeof__(posix_spawn) *)l->real)(l->pid, l->path, l->actions,
                                                l->attributes, l->argv, environment);
}

SP_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
                          const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *restrict attributes,
                          char *const argv[restrict], char *const envp[restrict])
{
    SP_REAL(posix_spawn);
    if (!real)
        return ENOSYS;
    return run((struct launch){.run = run_spawn,
                               .real = real,
                               .path = path,
                               .argv = argv,
                               .pid = pid,
                               .actions = actions,
                               .attributes = attributes},
               envp);
}

SP_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                           const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *restrict attributes,
                           char *const argv[restrict], char *const envp[restrict])
{
    SP_REAL(posix_spawnp);
    if (!real)
        return ENOSYS;
    return run((struct launch){.run = run_spawn,
                               .real = real,
                               .path = file,
                               .argv = argv,
                               .pid = pid,
                               .actions = actions,
                               .attributes = attributes},
               envp);
}

/* ---- functions that pass on the process's own environment ----------------------------------- */

/* Where the C environment lacks ours (a start-up file of Python, a program that is no
 * Python), it is exchanged for the time of the call. */
struct exchange {
    char **before;
    char **during;
    char *copy[FEW + 2];
    char joined[SP_PRELOAD_BYTES];
};

static void exchange_begin(struct exchange *e)
{
    size_t count;
    e->before = environ;
    e->during = NULL;
    if (look(environ, &count) == STATE_COMPLETE || count > FEW ||
        !complete(environ, count, e->copy, e->joined))
        return;
    e->during = e->copy;
    environ = e->copy;
}

static void exchange_end(const struct exchange *e)
{
    if (e->during && environ == e->during)
        environ = e->before;
}

SP_EXPORT int system(const char *command)
{
    SP_REAL(system);
    struct exchange e;
    if (!real)
        return -1;
    exchange_begin(&e);
    int status = real(command);
    exchange_end(&e);
    return status;
}

SP_EXPORT FILE *popen(const char *command, const char *type)
{
    SP_REAL(popen);
    struct exchange e;
    if (!real)
        return NULL;
    exchange_begin(&e);
    FILE *stream = real(command, type);
    int err = errno;
    exchange_end(&e);
    errno = err;
    return stream;
}
