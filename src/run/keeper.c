#include "run/keeper.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/trace_file.h"
#include "sys/tree.h"

#define KILL_PATIENCE_NS 5000000000u

/* What a supervisor may take that was told to end the run; more than its own patience with those
 * it kills. */
#define END_PATIENCE_NS 10000000000u

void sp_keeper_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGHUP);
    sigaddset(ret_set, SIGQUIT);
    sigaddset(ret_set, SIGWINCH);
}

pid_t sp_keeper_fork(int **ret_finished)
{
    int *finished = mmap(NULL, sizeof *finished, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (finished == MAP_FAILED)
        return -1;
    *ret_finished = finished;
    pid_t keeper = getpid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return -1;
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    /* SIGTERM, so that the run can be brought to an end; it is looked at in the loop. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0 || getppid() != keeper)
        _exit(125);
    return 0;
}

/* The next signal; the supervisor, told to end the run, is not waited for beyond `until_ns` (0:
 * it was not told): a guest can keep it waiting in the kernel. */
static int next_signal(const sigset_t *set, pid_t supervisor, uint64_t until_ns)
{
    siginfo_t info;
    if (until_ns == 0)
        return sigwaitinfo(set, &info);
    uint64_t now = sp_clock_ns();
    uint64_t left = until_ns > now ? until_ns - now : 0;
    const struct timespec wait = {(time_t)(left / 1000000000u),
                                  (long)(left % 1000000000u)};
    int signal = sigtimedwait(set, &info, &wait);
    if (signal < 0 && errno == EAGAIN)
        kill(supervisor, SIGKILL);
    return signal;
}

/* The supervisor's end, whatever signals come meanwhile; those go on to it. */
static int wait_supervisor(pid_t supervisor)
{
    sigset_t set;
    uint64_t until_ns = 0;
    sp_keeper_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (;;) {
        int status;
        pid_t pid = waitpid(supervisor, &status, WNOHANG | WUNTRACED);
        if (pid == supervisor && !WIFSTOPPED(status))
            return status;
        if (pid == supervisor) { /* Ctrl-Z: the whole job stops, and goes on as one */
            raise(SIGSTOP);
            kill(supervisor, SIGCONT);
            continue;
        }
        if (pid < 0 && errno != EINTR)
            return -1;
        int signal = next_signal(&set, supervisor, until_ns);
        if (signal > 0 && signal != SIGCHLD && signal != SIGWINCH) {
            kill(supervisor, signal);
            if (until_ns == 0)
                until_ns = sp_clock_ns() + END_PATIENCE_NS;
        }
    }
}

int sp_keeper_wait(pid_t supervisor, const int *finished, struct sp_trace_file *file,
                   bool *ret_died)
{
    int status = wait_supervisor(supervisor);
    *ret_died = false;
    if (__atomic_load_n(finished, __ATOMIC_ACQUIRE) != 0 && WIFEXITED(status))
        return WEXITSTATUS(status);
    *ret_died = true;
    sp_tree_kill(sp_clock_ns() + KILL_PATIENCE_NS, NULL, NULL);
    struct sp_error error;
    if (file != NULL && file->fd >= 0 && sp_trace_file_publish(file, &error) != 0)
        file->path[0] = '\0';
    return 125;
}
