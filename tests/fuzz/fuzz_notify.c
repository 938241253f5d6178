/* System calls that a guest's filter hands over, with any arguments that point to any memory: each is
 * decided as in a run, from the notification to the line in the trace. Nothing crashes, nothing
 * waits, each call is answered once, and the trace is sound.
 *
 * An input is: how, luck, calls, how frames lie, what was announced, what is asked, memory (see
 * make_corpus.py). The guest is this process; what its supervisor would do for it fails, since its
 * hands are tied.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "guest_memory.h"
#include "notify_doors.h"
#include "plan/limit_plan.h"
#include "policy/bind.h"
#include "policy/read.h"
#include "supervise/network.h"
#include "supervise/supervisor.h"

#define CALLS_MAX 8u
#define TID_AT    (GUEST_BASE + 0x200) /* the thread's number, which a walk looks for */

/* ---- policies ---------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum sp_reach reach;
    bool judged; /* reads and writes */
} policies[] = {
    {"[fs]\nallow_read = []\nallow_write = []\n[network]\nallow = []\n[process]\n"
     "allow = []\nfork = false\n[imports]\nnative = \"deny\"\n",
     SP_REACH_CLOSED, true},
    {"extends = \"trace-only\"\n", SP_REACH_OPEN, false},
    {"[fs]\nallow_read = [\"/usr\", \"/etc\"]\ndeny_read = [\"**/*.so\", "
     "\"/etc/shadow\"]\n"
     "allow_write = [\"/usr/is/not/there\"]\n[network]\n"
     "allow = [\"10.0.0.0/8\", \"fd00::/8\", \"a.example.com:443\"]\n"
     "deny = [\"10.1.2.3\"]\n[process]\nallow = [\"/usr/bin/*\"]\n",
     SP_REACH_JUDGED, true},
    {"mode = \"enforce\"\non_violation = \"stop\"\n[fs]\nallow_write = []\n",
     SP_REACH_OPEN, true},
};
#define POLICIES (sizeof policies / sizeof *policies)

static bool canonical(void *context, const char *path, char *to, size_t size)
{
    (void)context;
    return path[0] == '/' && snprintf(to, size, "%s", path) < (int)size;
}

static int find(void *context, const char *name, const char *from,
                const struct sp_policy **ret_policy, struct sp_error *reterr)
{
    (void)context;
    (void)from;
    *ret_policy = sp_policy_builtin(name);
    return *ret_policy != NULL ? 0 : sp_fail(reterr, SP_E_POLICY, "no such policy");
}

static struct sp_policy *make_policy(const char *text)
{
    static const struct sp_policy_finder finder = {find, NULL};
    static const char *const none[] = {NULL};
    static struct sp_problems problems;
    const struct sp_places places = {.work = "/usr/is/not/there",
                                     .home = "/usr/is/not/there",
                                     .python_read = none,
                                     .python_write = none,
                                     .python_programs = none,
                                     .canonical = canonical};
    struct sp_document document;
    struct sp_model model;
    struct sp_policy *policy = NULL;
    struct sp_policy *bound = NULL;
    problems.count = problems.errors = 0;
    sp_document_init(&document);
    DEMAND(sp_document_parse_toml(&document, text, strlen(text), NULL) == 0);
    if (sp_policy_read(&document, "x", "x.toml", &finder, &model, &problems) != 0)
        fprintf(stderr, "%s: %s\n", text, problems.items[0].message);
    DEMAND(problems.errors == 0);
    DEMAND(sp_model_finish(&model, &policy, NULL) == 0);
    DEMAND(sp_policy_bind(policy, &places, &bound, NULL) == 0);
    sp_model_release(&model);
    sp_document_release(&document);
    free(policy);
    return bound;
}

/* ---- the supervisor ---------------------------------------------------------------------- */

static struct {
    struct sp_ring_config head;
    char texts[32]; /* one root of {python}, an end; where the agents are */
} config = {.head = {.size = sizeof config,
                     .agents_offset = sizeof(struct sp_ring_config) + 14,
                     .preload_offset = sizeof(struct sp_ring_config) + 14,
                     .python_offset = sizeof(struct sp_ring_config),
                     .program_offset = sizeof(struct sp_ring_config) + 14},
            .texts = "/usr/lib/py/\0\0/agents"};

static struct {
    struct sp_policy *policies[POLICIES];
    struct sp_limit_plan limits;
    struct sp_launch launch;
    struct sp_supervision is;
    struct sp_supervisor s;
    int fds[6]; /* the guest's, as far as inputs name them */
    int trace;
    struct sp_ring *ring;
    size_t ring_bytes;
} run;

static void write_start(void *context, struct sp_trace_writer *w,
                        uint32_t python_version)
{
    (void)context;
    (void)w;
    (void)python_version;
}

static void once(void)
{
    int pipes[2];
    for (size_t i = 0; i < POLICIES; i++)
        run.policies[i] = make_policy(policies[i].text);
    DEMAND(pipe2(pipes, O_CLOEXEC) == 0);
    run.fds[0] = pipes[0];
    run.fds[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    run.fds[2] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    run.fds[3] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    run.fds[4] = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    run.fds[5] = memfd_create("guest", MFD_CLOEXEC);
    run.launch = (struct sp_launch){.path = "/usr/bin/python3",
                                    .folder = -1,
                                    .terminal = -1,
                                    .channel = -1,
                                    .ruleset = -1,
                                    .listener = true};
    signal(SIGPIPE, SIG_IGN);
    guest_tie_hands();
}

/* As the loop prepares one. */
static void supervisor_open(const uint8_t how)
{
    const size_t which = how % POLICIES;
    struct sp_supervisor *s = &run.s;
    memset(s, 0, sizeof *s);
    run.is = (struct sp_supervision){.policy = run.policies[which],
                                     .launch = &run.launch,
                                     .reads_judged = policies[which].judged,
                                     .writes_judged = policies[which].judged,
                                     .reach = policies[which].reach,
                                     .signals_scoped = (how & 4) != 0,
                                     .calls = SP_CALLS_FOLDED,
                                     .config = &config,
                                     .config_size = sizeof config,
                                     .limits = &run.limits,
                                     .control = -1,
                                     .keeper = getppid(),
                                     .debug = getenv("SANDPIT_FUZZ_DEBUG") != NULL,
                                     .write_start = write_start,
                                     .start_ns = sp_clock_ns()};
    run.is.writer = fuzz_trace_begin(0, &run.trace);
    s->is = &run.is;
    s->policy = run.is.policy;
    s->writer = run.is.writer;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->listener = LISTENER_FD;
    s->signal_fd = s->channel = s->resolver.socket = -1;
    s->resolver.pid = policies[which].reach == SP_REACH_JUDGED ? getpid() : 0;
    s->guest = (struct sp_guest){.pid = getpid(), .pidfd = -1, .listener = LISTENER_FD};
    s->phase = SP_PHASE_RUNNING;
    s->reach = run.is.reach;
    s->inet_granted = sp_policy_grants_inet(s->policy);
    sp_lanes_init(&s->lanes, run.is.start_ns, run.is.calls, &config, sizeof config);
    sp_sockets_init(&s->sockets, false);
    sp_files_init(&s->files);
    sp_early_init(&s->early);
    sp_buffer_init(&s->exception, 4096);
    sp_violations_init(&s->violations, SP_KIND_VIOLATION);
    sp_violations_init(&s->refusals, SP_KIND_TAMPER);
    sp_limits_open(s, &run.limits);
}

/* The process has a lane, and the guest's side of it is ours. */
static void lane_open(void)
{
    const struct seccomp_data no_call = {.nr = -1};
    struct sp_process *process = sp_notify_process(&run.s, getpid(), &no_call);
    int fd = -1;
    DEMAND(process != NULL);
    DEMAND(sp_lane_new(&run.s.lanes, ++run.s.lane_last, getpid(), NULL, &process->lane,
                       &fd, NULL) == 0);
    run.ring_bytes = (size_t)lseek(fd, 0, SEEK_END);
    run.ring = mmap(NULL, run.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DEMAND(run.ring != MAP_FAILED);
    close(fd);
}

static void end_process(void *context, struct sp_process *process)
{
    struct sp_supervisor *s = context;
    if (!process->exited || process->lane != NULL)
        sp_process_ended(s, process, -1, 0);
    sp_processes_remove(&s->processes, process);
}

static void supervisor_close(void)
{
    struct sp_supervisor *s = &run.s;
    struct sp_buffer list;
    sp_parked_look(s, sp_clock_ns() + UINT64_C(3600000000000));
    sp_processes_each(&s->processes, end_process, s);
    sp_parked_release(s);
    sp_violations_tell_repeats(&s->violations, s->writer, sp_supervisor_t(s));
    sp_violations_tell_repeats(&s->refusals, s->writer, sp_supervisor_t(s));
    sp_buffer_init(&list, 64u << 20);
    sp_violations_write(&s->violations, &list);
    sp_buffer_release(&list);
    close(s->epoll);
    sp_hosts_release(&s->hosts);
    sp_sockets_release(&s->sockets);
    sp_files_release(&s->files);
    sp_early_release(&s->early);
    sp_lanes_release(&s->lanes);
    sp_violations_release(&s->violations);
    sp_violations_release(&s->refusals);
    sp_buffer_release(&s->exception);
    sp_limits_close(s);
    munmap(run.ring, run.ring_bytes);
    fuzz_trace_finish(s->writer, run.trace);
}

/* ---- inputs ------------------------------------------------------------------------------ */

/* An argument: what kind of value it is, and which. */
static uint64_t take_argument(struct fuzz_bytes *from)
{
    const uint8_t tag = fuzz_u8(from);
    const uint32_t value = fuzz_u32(from);
    switch (tag & 7) {
    case 1:
        return GUEST_BASE + value;
    case 2:
        return (uint64_t)(int64_t)AT_FDCWD;
    case 3:
        return (uint64_t)run.fds[value % (sizeof run.fds / sizeof *run.fds)];
    case 4:
        return (uint64_t)getpid();
    case 5:
        return (uint64_t)value << 32 | value;
    case 6:
        return GUEST_BASE + GUEST_SIZE - value % 64;
    case 7:
        return 0;
    default:
        return (uint64_t)(int64_t)(int32_t)value;
    }
}

static void take_call(struct fuzz_bytes *from, uint64_t id, struct seccomp_notif *to)
{
    *to = (struct seccomp_notif){.id = id, .pid = (uint32_t)getpid()};
    const uint16_t nr = fuzz_u16(from);
    to->data.nr = nr == UINT16_MAX ? SP_CALL_NR : nr % 512;
    for (int i = 0; i < 6; i++)
        to->data.args[i] = take_argument(from);
}

/* What the agent's side of the ring holds: how frames lie, an act announced, a question. */
static void take_ring(struct fuzz_bytes *from, uint8_t how)
{
    if ((how & 8) != 0)
        fuzz_take(from, &run.ring->frames, sizeof run.ring->frames);
    if ((how & 16) != 0) {
        struct sp_ring_slot *slot = &run.ring->slots[0];
        const uint8_t act = fuzz_u8(from);
        const struct fuzz_bytes body = fuzz_part(from, fuzz_u16(from) & 0x7ff);
        slot->tid = (uint32_t)getpid();
        slot->act = act;
        slot->size = (uint16_t)body.size;
        memcpy(slot->body, body.data,
               body.size < sizeof slot->body ? body.size : sizeof slot->body);
        slot->serial = 2;
    }
    if ((how & 32) != 0) {
        const struct fuzz_bytes body = fuzz_part(from, fuzz_u16(from) & 0xfff);
        memcpy(run.ring->ask, body.data, body.size);
    }
    run.ring->started = (how & 64) != 0;
}

static void give(const struct seccomp_notif *n)
{
    struct sp_supervisor *s = &run.s;
    const unsigned parked = s->parked.count;
    if (n->data.nr == SP_CALL_NR && n->data.args[0] == SP_CALL_HELLO)
        s->failure.code = 0;
    door.next = *n;
    door.answers = 0;
    DEMAND(sp_notify(s));
    /* Answered, or parked; or the run is over, and nobody comes back from it. */
    DEMAND(door.answers + (s->parked.count - parked) == 1 || s->stopped);
    DEMAND(s->failure.code == 0);
    (void)sp_resolve_answered(s);
    sp_parked_look(s, sp_clock_ns());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    struct seccomp_notif calls[CALLS_MAX];
    struct fuzz_bytes from = {data, size};
    outside.asked = false;
    if (!ready)
        once();
    ready = true;
    const uint8_t how = fuzz_u8(&from);
    const unsigned count = 1 + fuzz_u8(&from) % CALLS_MAX;
    outside.luck = fuzz_u8(&from);
    for (unsigned i = 0; i < count; i++)
        take_call(&from, i + 1, &calls[i]);
    supervisor_open(how);
    lane_open();
    take_ring(&from, how);
    guest_memory_set(from.data, from.size);
    guest_memory_put(TID_AT, (uint64_t)getpid());
    for (unsigned i = 0; i < count && !run.s.stopped; i++)
        give(&calls[i]);
    supervisor_close();
    return 0;
}
