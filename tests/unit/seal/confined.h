/* Children for the live tests: a supervisor in its domain and a guest inside it, both
 * without capabilities, and the test process outside of both as the one who must not be
 * reached.
 */
#ifndef SP_TESTS_UNIT_SEAL_CONFINED_H
#define SP_TESTS_UNIT_SEAL_CONFINED_H

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As the product does before it makes a guest: root that keeps its capabilities passes
 * some of Landlock's checks. */
static inline void confined_drop(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &header, none) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        _exit(99);
}

/* In a child: ends it with `line` unless the condition holds. */
#define CHILD_CHECK(condition)                                                         \
    do {                                                                               \
        if (!(condition)) {                                                            \
            int child_errno = errno;                                                   \
            fprintf(stderr, "# %s:%d: %s (errno %d)\n", __FILE__, __LINE__,            \
                    #condition, child_errno);                                          \
            _exit(1);                                                                  \
        }                                                                              \
    } while (0)

#define CHILD_FAILS(call, error) CHILD_CHECK((call) < 0 && errno == (error))

/* Runs `body` in a child; its wait status. */
static inline int confined_run(void (*body)(const void *), const void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        body(argument);
        _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

#endif
