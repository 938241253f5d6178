/* The life of one run, from top to bottom: sp_supervise(). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scope.h"
#include "supervise/channel.h"
#include "supervise/event_stream.h"
#include "supervise/network.h"
#include "supervise/outcome.h"
#include "supervise/record.h"
#include "sys/guest.h"
#include "sys/listener.h"
#include "sys/tree.h"

#define DRAIN_INTERVAL_NS                                                              \
    100000000u /* what agents wrote is taken at the latest after this */
#define DRAIN_LIVE_NS 40000000u /* ... where somebody looks on */
#define KILL_PATIENCE_NS                                                               \
    8000000000u /* who has not died of SIGKILL by then hangs in the kernel: to give back much \
                    memory, or a large file without a name, takes its time */
#define DELIVER_PATIENCE_NS                                                            \
    100000000u /* after a wall limit, for a caller that does not read */
#define OUTPUT_TEXT_MAX     (1u << 20) /* of printed text in the trace */
#define OUTPUT_EVENTS_MAX   4096u
#define EXCEPTION_BYTES_MAX (256u << 10)

/* What an epoll event is about, where it is neither a stream nor a process. */
static char guest_ready;
static char signal_ready;
static char control_ready;
static char channel_ready;
static char resolver_ready;

/* Large; one a process. */
static struct sp_supervisor the_supervisor;

static void drain_one(void *context, struct sp_process *process)
{
    struct sp_supervisor *s = context;
    if (process->lane != NULL)
        sp_lane_drain(process->lane, s->writer, 0);
}

static void drain_all(struct sp_supervisor *s)
{
    sp_processes_each(&s->processes, drain_one, s);
}

/* What was printed, in its place among the other events. */
static void tell_output(struct sp_supervisor *s, int number, const char *data,
                        size_t size)
{
    if (s->phase < SP_PHASE_RUNNING || size == 0)
        return;
    if (s->output_told_bytes + size > OUTPUT_TEXT_MAX ||
        s->output_told >= OUTPUT_EVENTS_MAX) {
        sp_trace_lost(s->writer, 1, 0, "more output than the trace keeps");
        return;
    }
    drain_all(s);
    s->output_told++;
    s->output_told_bytes += size;
    sp_trace_begin(s->writer, SP_KIND_OUTPUT, SP_LAYER_SUPERVISOR, sp_supervisor_t(s),
                   s->guest.pid, s->guest.pid);
    static const char *const names[SP_STREAMS] = {"stdin", "stdout", "stderr",
                                                  "terminal"};
    sp_trace_string(s->writer, "stream", names[number]);
    sp_trace_uint(s->writer, "size", size);
    sp_trace_text(s->writer, "text", data, size);
    sp_trace_end(s->writer);
}

static size_t on_output(void *context, int number, const char *data, size_t size)
{
    struct sp_supervisor *s = context;
    size_t within = sp_limits_print(s, size);
    tell_output(s, number, data, within);
    return within;
}

static bool watch(struct sp_supervisor *s, int fd, void *about)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = about};
    return fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void cancel(struct sp_supervisor *s, int signal)
{
    if (s->cancelled)
        return;
    s->cancelled = true;
    s->cancel_signal = signal;
}

static void on_signal(struct sp_supervisor *s)
{
    struct signalfd_siginfo info;
    if (read(s->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGWINCH)
        sp_terminal_resize(&s->relay.terminal);
    else
        cancel(s, (int)info.ssi_signo);
}

/* The API's end of the socket: any line asks for the end, and so does its closing. */
static void on_control(struct sp_supervisor *s)
{
    char text[256];
    ssize_t n = recv(s->is->control, text, sizeof text, MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        cancel(s, SIGTERM);
}

/* A process that is not ours to reap has ended: how, only newer kernels tell. */
static void on_process_end(struct sp_supervisor *s, struct sp_process *process)
{
    int status = 0;
    int code = -1;
    int signal = 0;
    if (process->program)
        return; /* reaped by reap_program() */
    if (waitpid(process->pid, &status, WNOHANG) == process->pid) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    } else {
        sp_pidfd_exit_status(process->pidfd, &code, &signal);
        if (code < 0 && signal == 0) { /* its parent has not asked yet, or just did */
            signal = sp_guest_zombie_signal(process->pid, process->start_ticks);
            sp_pidfd_exit_status(process->pidfd, &code, &signal);
        }
    }
    sp_process_ended(s, process, code, signal);
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, process->pidfd, NULL);
    sp_processes_remove(&s->processes, process);
}

static void reap_program(struct sp_supervisor *s)
{
    if (wait4(s->guest.pid, &s->wait_status, WNOHANG, &s->usage) != s->guest.pid)
        return;
    s->reaped = true;
    struct sp_process *process = sp_processes_find(&s->processes, s->guest.pid);
    if (process != NULL)
        sp_process_ended(s, process,
                         WIFEXITED(s->wait_status) ? WEXITSTATUS(s->wait_status) : -1,
                         WIFSIGNALED(s->wait_status) ? WTERMSIG(s->wait_status) : 0);
}

/* What goes on beside the calls is looked after so often. */
static uint64_t interval_ns(const struct sp_supervisor *s)
{
    return sp_event_stream_on(s->is->events) ? DRAIN_LIVE_NS : DRAIN_INTERVAL_NS;
}

static int time_left_ms(const struct sp_supervisor *s)
{
    uint64_t now = sp_clock_ns();
    uint64_t due = now + interval_ns(s);
    if (s->deadline_ns != 0 && s->deadline_ns < due)
        due = s->deadline_ns;
    if (sp_limits_due_ns(&s->limits) < due)
        due = sp_limits_due_ns(&s->limits);
    if (sp_event_stream_due_ns(s->is->events) < due)
        due = sp_event_stream_due_ns(s->is->events);
    uint64_t parked = sp_parked_next_ns(&s->parked, now);
    if (parked != 0 && parked < due)
        due = parked;
    uint64_t wait = due > now ? due - now : 0;
    return (int)((wait + 999999) / 1000000);
}

/* Children of the guest that were left to us, and that never showed themselves. */
static void reap_strangers(struct sp_supervisor *s)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != s->guest.pid &&
           sp_processes_find(&s->processes, info.si_pid) == NULL) {
        waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}

/* Done in time however much there is to do: what is left undone would grow. */
static void keep_up(struct sp_supervisor *s, uint64_t now)
{
    s->kept_up_ns = now;
    reap_strangers(s);
    drain_all(s);
    sp_limits_keep_up(s);
    sp_trace_flush(s->writer, false);
    sp_event_stream_push(s->is->events);
}

static void on_time(struct sp_supervisor *s)
{
    sp_violations_tell_repeats(&s->violations, s->writer, sp_supervisor_t(s));
    sp_violations_tell_repeats(&s->refusals, s->writer, sp_supervisor_t(s));
}

/* Calls of the guest, when they can be taken no more. */
static void on_call(struct sp_supervisor *s, short events)
{
    if ((events & POLLIN) != 0 && sp_notify(s))
        return;
    if ((events & POLLHUP) != 0)
        s->listener = -1;
}

/* Waits for a call of the guest (`ret_call`: what the listener says) or for anything else
 * (`ret_event`): how many came, at most one. The listener is not in the epoll set, which would wake
 * this process on any processor, not on the one that the guest's thread is leaving. Where both are
 * there, they take turns: neither keeps the other out. */
static int await(struct sp_supervisor *s, short *ret_call,
                 struct epoll_event *ret_event)
{
    struct pollfd ends[] = {{.fd = s->listener, .events = POLLIN},
                            {.fd = s->epoll, .events = POLLIN}};
    *ret_call = 0;
    int n = poll(ends, 2, time_left_ms(s));
    if (n <= 0)
        return n;
    s->call_was_first = ends[0].revents != 0 && !(n == 2 && s->call_was_first);
    if (s->call_was_first) {
        *ret_call = ends[0].revents;
        return 1;
    }
    return epoll_wait(s->epoll, ret_event, 1, 0);
}

/* One event at a time: what it is about may be gone after another was dealt with. */
static void turn(struct sp_supervisor *s)
{
    struct epoll_event e;
    short call;
    int n = await(s, &call, &e);
    uint64_t now = sp_clock_ns();
    if (s->deadline_ns != 0 && now >= s->deadline_ns)
        sp_limits_reach(s, SP_LIMIT_WALL, now - s->is->start_ns, false);
    sp_limits_look(s, now);
    sp_parked_look(s, now);
    if (n == 0)
        on_time(s);
    if (n == 0 || now - s->kept_up_ns >= interval_ns(s))
        keep_up(s, now);
    if (now >= sp_event_stream_due_ns(s->is->events))
        sp_event_stream_push(s->is->events);
    if (n <= 0)
        return;
    if (call != 0) {
        on_call(s, call);
        return;
    }
    void *about = e.data.ptr;
    if (about == &guest_ready) {
        reap_program(s);
    } else if (about == &signal_ready) {
        on_signal(s);
    } else if (about == &control_ready) {
        on_control(s);
    } else if (about == &channel_ready) {
        if (!sp_channel_take(s))
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->channel, NULL);
    } else if (about == &resolver_ready) {
        if (!sp_resolve_answered(s))
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->resolver.socket, NULL);
    } else if (about == s->is->events) {
        sp_event_stream_push(s->is->events);
    } else if (sp_parked_ready(s, about)) {
        return;
    } else if (about == s->relay.streams[0] || about == s->relay.streams[1] ||
               about == s->relay.streams[2] || about == s->relay.streams[3]) {
        sp_relay_move(&s->relay, about);
    } else {
        on_process_end(s, about);
    }
}

static bool goes_on(const struct sp_supervisor *s)
{
    return !s->reaped && !sp_limits_ended(&s->limits) && !s->cancelled && !s->stopped &&
           s->failure.code == 0;
}

static void on_killed(void *context, pid_t pid, int status, const struct rusage *usage)
{
    struct sp_supervisor *s = context;
    if (pid == s->guest.pid) {
        s->reaped = true;
        s->wait_status = status;
        s->usage = *usage;
    }
    struct sp_process *process = sp_processes_find(&s->processes, pid);
    if (process != NULL)
        sp_process_ended(s, process, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void end_process(void *context, struct sp_process *process)
{
    struct sp_supervisor *s = context;
    if (!process->exited || process->lane != NULL)
        sp_process_ended(s, process, -1, 0);
    sp_processes_remove(&s->processes, process);
}

/* Passes on what the guest printed last. Whoever reads it may take the time that plain python
 * would give it; after a limit it may not. */
static void deliver(struct sp_supervisor *s)
{
    bool hurry = sp_limits_ended(&s->limits) || s->cancelled || s->stopped ||
                 s->failure.code != 0;
    uint64_t until = sp_clock_ns() + DELIVER_PATIENCE_NS;
    sp_relay_finish(&s->relay);
    while (!sp_relay_drained(&s->relay)) {
        struct epoll_event e;
        uint64_t now = sp_clock_ns();
        if (hurry && now >= until)
            return;
        int n = epoll_wait(s->epoll, &e, 1, 20);
        if (n > 0 && e.data.ptr == &signal_ready) {
            on_signal(s);
            hurry = true;
        } else if (n > 0 && e.data.ptr == &control_ready) {
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->is->control, NULL);
        } else if (n > 0 && e.data.ptr == &channel_ready) {
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->channel, NULL);
        } else if (n > 0 && e.data.ptr == &resolver_ready) {
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->resolver.socket, NULL);
        } else if (n > 0 && e.data.ptr == &guest_ready) {
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->guest.pidfd, NULL);
        } else if (n > 0 && e.data.ptr == s->is->events) {
            sp_event_stream_push(s->is->events);
        } else if (n > 0) {
            sp_relay_move(&s->relay, e.data.ptr);
        }
        sp_relay_finish(&s->relay);
    }
}

/* Nothing of the run outlives it. */
static void end_everything(struct sp_supervisor *s)
{
    if (s->phase == SP_PHASE_LOADING && s->failure.code == 0 && s->reaped) {
        bool started = sp_launch_failed(&s->guest, s->is->launch, NULL) == 0;
        if (started && s->is->needs_agent)
            sp_supervisor_fail_agent(s);
        else if (started)
            sp_supervisor_begin(s, 0);
    }
    drain_all(s);
    sp_limits_finish(s);
    s->phase = s->phase < SP_PHASE_RUNNING ? s->phase : SP_PHASE_ENDING;
    if (!sp_tree_kill(sp_clock_ns() + KILL_PATIENCE_NS, on_killed, s) &&
        s->failure.code == 0)
        (void)sp_fail(&s->failure, SP_E_HOST, "a process of the run cannot be killed");
    sp_processes_each(&s->processes, end_process, s);
    sp_parked_release(s);
    bool brokered = s->is->writes_judged && s->observed == NULL;
    sp_files_remove_shared_memory(&s->files, brokered ? &s->shared_memory : NULL);
    deliver(s);
}

/* Each process of the guest costs a descriptor here. The guest is there already and keeps the
 * limit that it was started with. */
static void raise_files_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int start(struct sp_supervisor *s, struct sp_error *reterr)
{
    const struct sp_supervision *is = s->is;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->signal_fd = signalfd(-1, is->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->epoll < 0 || s->signal_fd < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot watch the program");
    int code =
        sp_relay_open(&s->relay, is->stdio, is->capture, is->capture_max, reterr);
    if (code != 0)
        return code;
    s->relay.on_output = on_output;
    s->relay.context = s;
    for (int i = 0; i < 3; i++)
        is->launch->stdio[i] = s->relay.guest[i];
    is->launch->terminal = s->relay.terminal.slave;
    sp_auto_fd channel = -1;
    if (!is->launch->listener)
        code = sp_channel_make(s, &channel, reterr);
    is->launch->channel = channel;
    const struct sp_policy *judge = s->observed != NULL ? s->observed : s->policy;
    bool names = sp_policy_reach(judge) == SP_REACH_JUDGED && is->launch->listener &&
                 sp_policy_has_hosts(judge);
    if (code == 0 && names)
        code = sp_resolver_start(&s->resolver, is->resolver, reterr);
    if (code == 0)
        code = sp_launch(is->launch, &s->guest, reterr);
    if (code != 0)
        return code;
    if (!is->launch->listener)
        s->phase = SP_PHASE_LOADING; /* nobody tells of its exec */
    raise_files_limit();
    /* From here on untrusted code may run: nobody may look into this process. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    sp_relay_start(&s->relay, s->epoll);
    sp_event_stream_watch(is->events, s->epoll);
    s->listener = s->guest.listener;
    if (s->listener >= 0)
        s->wakes_here = sp_listener_wake_locally(s->listener);
    if (!watch(s, s->guest.pidfd, &guest_ready) ||
        !watch(s, s->signal_fd, &signal_ready) ||
        !watch(s, is->control, &control_ready) ||
        !watch(s, s->channel, &channel_ready) ||
        !watch(s, s->resolver.socket, &resolver_ready))
        return sp_fail_errno(reterr, SP_E_HOST, "cannot watch the program");
    return 0;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* From the wall limit on, whatever this process waits for in the kernel is broken off: a thread
 * that is given a descriptor must come to take it, and a guest can keep one from running. */
static void set_alarm(uint64_t deadline_ns)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {0};
    sigset_t alarm;
    if (deadline_ns != 0) {
        uint64_t now = sp_clock_ns();
        uint64_t left = deadline_ns > now ? (deadline_ns - now) / 1000 + 1 : 1;
        timer.it_value.tv_sec = (time_t)(left / 1000000);
        timer.it_value.tv_usec = (suseconds_t)(left % 1000000);
        timer.it_interval.tv_usec = 20000;
    }
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void prepare(struct sp_supervisor *s, const struct sp_supervision *is)
{
    /* It is all zeros: one a process. To write them would make its pages our own. */
    s->is = is;
    s->policy = is->policy;
    s->observed = is->observed;
    s->writer = is->writer;
    s->epoll = s->listener = s->signal_fd = s->channel = -1;
    s->guest = (struct sp_guest){.pidfd = -1, .listener = -1};
    for (int i = 0; i < 3; i++)
        s->relay.guest[i] = -1;
    sp_lanes_init(&s->lanes, is->start_ns, is->calls, is->config, is->config_size);
    s->reach = is->reach;
    s->inet_granted = sp_policy_grants_inet(is->policy);
    s->resolver.socket = -1;
    sp_sockets_init(&s->sockets, is->keep_sockets);
    sp_files_init(&s->files);
    sp_early_init(&s->early);
    sp_buffer_init(&s->exception, EXCEPTION_BYTES_MAX);
    sp_violations_init(&s->violations, SP_KIND_VIOLATION);
    sp_violations_init(&s->refusals, SP_KIND_TAMPER);
    uint64_t wall_ns = is->limits->limits.value[SP_LIMIT_WALL];
    s->deadline_ns = wall_ns != 0 ? is->start_ns + wall_ns : 0;
    sp_limits_open(s, is->limits);
}

static void release(struct sp_supervisor *s)
{
    sp_relay_close(&s->relay);
    sp_guest_release(&s->guest);
    sp_event_stream_watch(s->is->events, -1);
    sp_close_fd(&s->epoll);
    sp_close_fd(&s->signal_fd);
    sp_close_fd(&s->channel);
    sp_parked_release(s);
    sp_resolver_release(&s->resolver);
    sp_hosts_release(&s->hosts);
    sp_sockets_release(&s->sockets);
    sp_files_release(&s->files);
    sp_early_release(&s->early);
    sp_lanes_release(&s->lanes);
    sp_violations_release(&s->violations);
    sp_violations_release(&s->refusals);
    sp_buffer_release(&s->exception);
    sp_limits_close(s);
}

/* The line of the exception that ended the program goes into the result as well. Names of
 * members cannot occur within texts, where quotes are escaped. */
void sp_supervise_line(const char *line, size_t size)
{
    static const char kind[] = "\"kind\":\"exception\"";
    struct sp_supervisor *s = &the_supervisor;
    char pid[40];
    if (memmem(line, size < 80 ? size : 80, kind, sizeof kind - 1) == NULL)
        return;
    sp_limits_claim(s, line, size);
    snprintf(pid, sizeof pid, ",\"pid\":%d,", (int)s->guest.pid);
    const char *from = memmem(line, size, "\"type\":", 7);
    if (from == NULL || memmem(line, size, "\"ended\":true", 12) == NULL ||
        memmem(line, size, pid, strlen(pid)) == NULL)
        return;
    const char *stack = memmem(from, size - (size_t)(from - line), ",\"stack\":", 9);
    sp_buffer_clear(&s->exception);
    sp_buffer_text(&s->exception, "{");
    sp_buffer_append(&s->exception, from,
                     (size_t)((stack != NULL ? stack : line + size - 1) - from));
    if (stack != NULL) {
        sp_buffer_text(&s->exception, ",\"traceback\":");
        sp_buffer_append(&s->exception, stack + 9,
                         (size_t)(line + size - 1 - stack) - 9);
    }
}

int sp_supervise(const struct sp_supervision *supervision,
                 struct sp_outcome *ret_outcome, struct sp_error *reterr)
{
    struct sp_supervisor *s = &the_supervisor;
    prepare(s, supervision);
    int code = start(s, reterr);
    if (code == 0) {
        if (s->deadline_ns != 0)
            set_alarm(s->deadline_ns);
        while (goes_on(s))
            turn(s);
        if (s->deadline_ns != 0)
            set_alarm(0);
        end_everything(s);
        code = sp_launch_failed(&s->guest, supervision->launch, reterr);
        if (code == 0 && s->failure.code != 0) {
            code = s->failure.code;
            if (reterr != NULL)
                *reterr = s->failure;
        }
    } else {
        (void)sp_tree_kill(sp_clock_ns() + KILL_PATIENCE_NS, NULL, NULL);
    }
    if (code == 0) {
        sp_outcome_fill(s, ret_outcome);
        sp_outcome_write(s, ret_outcome);
    }
    release(s);
    return code;
}
