#include "sys/watchdog.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#define BITE_NS 10000000 /* again and again, until the end */

static timer_t timer;
static bool ready;
static unsigned depth;

static void on_alarm(int signal)
{
    (void)signal;
}

static void make(void)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigset_t alarm;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    ready = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

bool sp_watchdog_begin(void)
{
    const struct itimerspec bite = {{0, BITE_NS}, {0, BITE_NS}};
    if (depth++ > 0)
        return ready;
    if (!ready)
        make();
    return ready && timer_settime(timer, 0, &bite, NULL) == 0;
}

void sp_watchdog_end(void)
{
    const struct itimerspec none = {{0, 0}, {0, 0}};
    if (--depth == 0 && ready)
        timer_settime(timer, 0, &none, NULL);
}
