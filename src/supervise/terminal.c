#include "supervise/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scope.h"

bool sp_terminal_is(const int stdio[3], int i)
{
    return stdio[i] >= 0 && isatty(stdio[i]);
}

static bool in_foreground(int fd)
{
    return tcgetpgrp(fd) == getpgrp();
}

static int open_pair(struct sp_terminal *terminal)
{
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->master < 0)
        return -1;
    char name[64];
    if (grantpt(terminal->master) != 0 || unlockpt(terminal->master) != 0 ||
        ptsname_r(terminal->master, name, sizeof name) != 0)
        return -1;
    terminal->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return terminal->slave < 0 ? -1
                               : fcntl(terminal->master, F_SETFL, O_RDWR | O_NONBLOCK);
}

static int raw(const struct sp_terminal *terminal)
{
    struct termios t = terminal->before;
    cfmakeraw(&t);
    return tcsetattr(terminal->caller, TCSADRAIN, &t);
}

int sp_terminal_open(struct sp_terminal *terminal, const int stdio[3])
{
    *terminal = (struct sp_terminal){.master = -1, .slave = -1, .caller = -1};
    for (int i = 0; i < 3 && terminal->caller < 0; i++)
        if (sp_terminal_is(stdio, i))
            terminal->caller = stdio[i];
    if (terminal->caller < 0)
        return 0;
    if (tcgetattr(terminal->caller, &terminal->before) != 0 || open_pair(terminal) != 0)
        return -1;
    struct termios inner = terminal->before;
    terminal->input = sp_terminal_is(stdio, 0) && in_foreground(terminal->caller);
    if (!terminal->input)
        inner.c_oflag &= ~(tcflag_t)OPOST; /* the caller's own still does it */
    tcsetattr(terminal->slave, TCSANOW, &inner);
    sp_terminal_resize(terminal);
    return terminal->input ? raw(terminal) : 0;
}

void sp_terminal_resize(const struct sp_terminal *terminal)
{
    struct winsize size;
    if (terminal->master >= 0 && ioctl(terminal->caller, TIOCGWINSZ, &size) == 0)
        ioctl(terminal->master, TIOCSWINSZ, &size);
}

bool sp_terminal_suspend(const struct sp_terminal *terminal, char *data, size_t *size)
{
    struct termios inner;
    if (terminal->master < 0 || !terminal->input ||
        tcgetattr(terminal->master, &inner) != 0 || (inner.c_lflag & ISIG) == 0 ||
        inner.c_cc[VSUSP] == _POSIX_VDISABLE)
        return false;
    char *at = memchr(data, inner.c_cc[VSUSP], *size);
    if (at == NULL)
        return false;
    memmove(at, at + 1, *size - (size_t)(at + 1 - data));
    (*size)--;
    /* The guest's session has no job control above it, so that a stop typed at its terminal
     * would be ignored: its foreground group is stopped for it. */
    pid_t group = tcgetpgrp(terminal->master);
    if (group > 1)
        kill(-group, SIGSTOP);
    sp_terminal_restore(terminal);
    /* The keeper sees it and stops as well: it is what the shell waits for. Where no shell is
     * there to continue the job, the kernel ignores this signal, and so nothing stops. */
    raise(SIGTSTP);
    raw(terminal);
    sp_terminal_resize(terminal);
    if (group > 1)
        kill(-group, SIGCONT);
    return true;
}

void sp_terminal_restore(const struct sp_terminal *terminal)
{
    if (terminal->input)
        tcsetattr(terminal->caller, TCSADRAIN, &terminal->before);
}

void sp_terminal_close(struct sp_terminal *terminal)
{
    sp_terminal_restore(terminal);
    sp_close_fd(&terminal->master);
    sp_close_fd(&terminal->slave);
    terminal->input = false;
}
