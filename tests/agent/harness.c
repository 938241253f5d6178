/* A supervisor in small, to test the agent without a kernel layer: it hands out rings over
 * the socket channel (src/agent/channel.h), answers, and prints what arrives as JSON lines.
 *
 *   harness [options] -- program arguments...
 *     -o FILE    where the lines go (default: standard output)
 *     -s FOLDER  folder of the stub and the agents
 *     -c LEVEL   call tracing: off, first, folded, all
 *     -p START   how paths of {python} begin; may be repeated
 *     -P FILE    the program as its code names it
 *     -i NAME    imports of NAME by reviewed code are denied; may be repeated
 *     -n         the network is denied
 *     -a         what is asked is allowed all the same
 *     -w WORDS   size of the ring, a power of two
 *     -r         read-only opens are announced, not told (config.opens)
 *
 * What a line is about stands under "row": hello, ask, lookup, event, slot, call, word, fold,
 * tamper, lost, function, exit.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/channel.h"
#include "event/event.h"
#include "policy/policy.h"
#include "ring/ring.h"

#define LANES_MAX  1024
#define NAMES_MAX  64
#define CHANNEL_FD 100

struct lane {
    pid_t pid;
    struct sp_ring *ring;
    uint64_t *words;
    uint64_t tail;
    uint64_t side_tail;
    uint32_t slots[SP_SLOTS];
    uint32_t functions;
    uint32_t tid;
    uint64_t text;
    uint64_t lost;
};

static struct lane lanes[LANES_MAX];
static size_t lanes_count;
static FILE *out;

static struct {
    const char *folder;
    const char *program;
    const char *python[NAMES_MAX];
    const char *imports[NAMES_MAX];
    size_t python_count;
    size_t imports_count;
    uint64_t words;
    enum sp_calls_level calls;
    bool network;
    bool allow;
    bool opens;
} options = {.words = SP_WORDS_FOLDED};

static void fail(const char *what)
{
    perror(what);
    exit(70);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void print_text(const uint8_t *text, size_t size)
{
    fputc('"', out);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fprintf(out, "\\%c", text[i]);
        else if (text[i] < 0x20)
            fprintf(out, "\\u%04x", text[i]);
        else
            fputc(text[i], out);
    }
    fputc('"', out);
}

static void print_fields(const uint8_t *fields, size_t size)
{
    size_t at = 0;
    while (at < size) {
        struct sp_ring_field head;
        if (size - at < sizeof head)
            fail("field head");
        memcpy(&head, fields + at, sizeof head);
        at += sizeof head;
        const char *key = sp_field_key(head.field);
        if (!key || head.size > size - at)
            fail("field");
        if (head.field == SP_FIELD_AT_LINE)
            key = "at_line";
        fprintf(out, ",\"%s\":", key);
        int64_t value = 0;
        switch (sp_field_type(head.field)) {
        case SP_TYPE_TEXT:
            print_text(fields + at, head.size);
            break;
        case SP_TYPE_INT:
            memcpy(&value, fields + at, 8);
            fprintf(out, "%lld", (long long)value);
            break;
        case SP_TYPE_BOOL:
            memcpy(&value, fields + at, 8);
            fputs(value ? "true" : "false", out);
            break;
        }
        at += head.size;
    }
}

static void print_body(const char *row, struct lane *lane,
                       const struct sp_ring_event *event, const uint8_t *fields)
{
    if (event->kind >= SP_KIND_COUNT)
        fail("kind");
    fprintf(out,
            "{\"row\":\"%s\",\"pid\":%d,\"tid\":%u,\"kind\":\"%s\",\"unannounced\":%s",
            row, lane->pid, event->tid, sp_kind_name(event->kind),
            event->flags & SP_EVENT_NATIVE ? "true" : "false");
    if (event->flags & SP_EVENT_TEXT)
        fprintf(out, ",\"text\":%llu", (unsigned long long)lane->text);
    print_fields(fields, event->size);
    fputs("}\n", out);
}

/* ---- reading a lane ------------------------------------------------------------------------ */

static uint8_t message[SP_MESSAGE_WORDS_MAX * 8];

static void take_message(struct lane *lane, unsigned type, size_t size)
{
    uint64_t first;
    memcpy(&first, message, 8);
    switch (type) {
    case SP_MSG_TIME:
        break;
    case SP_MSG_THREAD:
        lane->tid = (uint32_t)first;
        break;
    case SP_MSG_EVENT: {
        struct sp_ring_event event;
        memcpy(&event, message, sizeof event);
        if (sizeof event + event.size > size)
            fail("event size");
        if (!sp_kind_from_ring(event.kind))
            fail("kind from ring");
        print_body("event", lane, &event, message + sizeof event);
        lane->text = 0;
        break;
    }
    case SP_MSG_TEXT:
        lane->text += first;
        break;
    case SP_MSG_FOLD:
        fprintf(out, "{\"row\":\"fold\",\"pid\":%d}\n", lane->pid);
        break;
    case SP_MSG_CALL: {
        struct sp_ring_call call;
        memcpy(&call, message, sizeof call);
        fprintf(out,
                "{\"row\":\"call\",\"pid\":%d,\"tid\":%u,\"id\":%u,\"caller\":%u}\n",
                lane->pid, call.tid, call.callee, call.caller);
        break;
    }
    case SP_MSG_TAMPER:
        fprintf(out, "{\"row\":\"tamper\",\"pid\":%d,\"text\":", lane->pid);
        print_text(message, strnlen((const char *)message, size));
        fputs("}\n", out);
        break;
    default:
        fail("message type");
    }
}

static uint64_t drain_words(struct lane *lane, const uint64_t *words, uint64_t count,
                            uint64_t tail, uint64_t head)
{
    if (head - tail > count)
        fail("head");
    while (tail < head) {
        uint64_t word = words[tail++ & (count - 1)];
        uint32_t what = (uint32_t)(word >> 32);
        if (what) {
            fprintf(out,
                    "{\"row\":\"word\",\"pid\":%d,\"tid\":%u,\"id\":%u,\"return\":%d,"
                    "\"resume\":%d,\"raised\":%d}\n",
                    lane->pid, lane->tid, what & 0x1fffffff, what >> 31, what >> 30 & 1,
                    what >> 29 & 1);
            continue;
        }
        size_t size = word & 0xffffff;
        if (size > SP_MESSAGE_WORDS_MAX || size > head - tail)
            fail("message size");
        for (size_t i = 0; i < size; i++)
            memcpy(message + i * 8, &words[tail++ & (count - 1)], 8);
        take_message(lane, (unsigned)(word >> 24 & 0xff), size * 8);
    }
    return tail;
}

static void print_functions(struct lane *lane)
{
    uint32_t count = __atomic_load_n(&lane->ring->functions, __ATOMIC_ACQUIRE);
    const uint8_t *arena = (const uint8_t *)lane->ring + lane->ring->arena_offset;
    while (lane->functions < count) {
        struct sp_ring_function f;
        const uint8_t *at = arena + lane->ring->function_offsets[++lane->functions];
        memcpy(&f, at, sizeof f);
        at += sizeof f;
        fprintf(out,
                "{\"row\":\"function\",\"pid\":%d,\"id\":%u,\"native\":%d,\"name\":",
                lane->pid, lane->functions, f.native);
        print_text(at, f.name_size);
        fputs("}\n", out);
    }
}

/* A slot may be written over while it is read: then its serial has changed, and it is left
 * for the next time. */
static void print_slots(struct lane *lane)
{
    for (unsigned i = 0; i < SP_SLOTS; i++) {
        const struct sp_ring_slot *shared = &lane->ring->slots[i];
        struct sp_ring_slot slot;
        uint32_t serial = __atomic_load_n(&shared->serial, __ATOMIC_ACQUIRE);
        if (serial == lane->slots[i] || serial % 2)
            continue;
        memcpy(&slot, shared, sizeof slot);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&shared->serial, __ATOMIC_RELAXED) != serial ||
            slot.act == SP_ACT_NONE)
            continue;
        lane->slots[i] = serial;
        fprintf(out, "{\"row\":\"slot\",\"pid\":%d,\"tid\":%u,\"act\":%u", lane->pid,
                slot.tid, slot.act);
        print_fields(slot.body, slot.size);
        fputs("}\n", out);
    }
}

static void drain(struct lane *lane)
{
    struct sp_ring *ring = lane->ring;
    print_functions(lane);
    lane->side_tail = drain_words(lane, ring->side, SP_SIDE_WORDS, lane->side_tail,
                                  __atomic_load_n(&ring->side_head, __ATOMIC_ACQUIRE));
    __atomic_store_n(&ring->side_tail, lane->side_tail, __ATOMIC_RELEASE);
    lane->tail = drain_words(lane, lane->words, ring->words_count, lane->tail,
                             __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE));
    __atomic_store_n(&ring->tail, lane->tail, __ATOMIC_RELEASE);
    print_slots(lane);
    uint64_t lost = __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
    if (lost > lane->lost)
        fprintf(out, "{\"row\":\"lost\",\"pid\":%d,\"count\":%llu}\n", lane->pid,
                (unsigned long long)(lost - lane->lost));
    lane->lost = lost;
}

static struct lane *find_lane(pid_t pid)
{
    for (size_t i = lanes_count; i-- > 0;)
        if (lanes[i].pid == pid)
            return &lanes[i];
    return NULL;
}

/* ---- making a lane --------------------------------------------------------------------------- */

static uint32_t add_text(uint8_t *config, uint32_t *at, const char *text)
{
    uint32_t offset = *at;
    strcpy((char *)config + offset, text);
    *at += (uint32_t)strlen(text) + 1;
    return offset;
}

static uint32_t make_policy(uint8_t *block)
{
    struct sp_policy *p = (struct sp_policy *)block;
    struct sp_policy_rule *rules = (struct sp_policy_rule *)(p + 1);
    size_t count = options.imports_count + (options.network ? 1 : 0);
    uint32_t at = (uint32_t)(sizeof *p + count * sizeof *rules);
    p->rules_offset = sizeof *p;
    p->rules_count = (uint32_t)count;
    p->bound = 1;
    p->name = p->source = p->description = p->digest = add_text(block, &at, "harness");
    for (size_t i = 0; i < SP_LIST_COUNT; i++)
        p->lists[i].key = p->lists[i].spot.source = p->name;
    for (size_t i = 0; i < SP_SETTING_COUNT; i++)
        p->settings[i].key = p->settings[i].spot.source = p->name;
    for (size_t i = 0; i < SP_LIMIT_COUNT; i++)
        p->limits[i].spot.source = p->name;
    for (size_t i = 0; i < count; i++) {
        bool import = i < options.imports_count;
        rules[i] = (struct sp_policy_rule){
            .list = import ? SP_LIST_IMPORTS : SP_LIST_NETWORK,
            .action = SP_DENY,
            .shape = import ? SP_SHAPE_PLAIN : SP_SHAPE_ANY,
            .spot = {.source = p->name, .line = (uint32_t)i + 1}};
        rules[i].key = add_text(block, &at, import ? "imports.deny" : "network.deny");
        rules[i].pattern = rules[i].written =
            add_text(block, &at, import ? options.imports[i] : "*");
    }
    p->size = at;
    return at;
}

static void fill_config(uint8_t *area)
{
    struct sp_ring_config *c = (struct sp_ring_config *)area;
    uint32_t at = (sizeof *c + 15) & ~15u;
    c->calls = options.calls;
    c->trace = 1;
    c->lookups = 1;
    c->opens = options.opens;
    c->policy_offset = at;
    c->policy_size = make_policy(area + at);
    at += c->policy_size;
    c->agents_offset = add_text(area, &at, options.folder);
    c->program_offset = add_text(area, &at, options.program ? options.program : "");
    c->python_offset = at;
    for (size_t i = 0; i < options.python_count; i++)
        add_text(area, &at, options.python[i]);
    add_text(area, &at, "");
    c->size = at;
}

static int make_lane(pid_t pid)
{
    if (lanes_count == LANES_MAX)
        fail("lanes");
    struct lane *lane = &lanes[lanes_count];
    memset(lane, 0, sizeof *lane);
    uint64_t config = (sizeof(struct sp_ring) + 63) & ~63ull;
    uint64_t arena = config + SP_CONFIG_BYTES;
    uint64_t folds = arena + SP_ARENA_BYTES;
    uint64_t words = folds + SP_FOLDS_MAX * sizeof(struct sp_ring_fold);
    uint64_t bytes = words + options.words * 8;
    int fd = memfd_create("ring", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        fail("memfd");
    struct sp_ring *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        fail("mmap");
    ring->magic = SP_RING_MAGIC;
    ring->lane = (uint32_t)lanes_count;
    ring->bytes = bytes;
    ring->config_offset = config;
    ring->arena_offset = arena;
    ring->folds_offset = folds;
    ring->words_offset = words;
    ring->words_count = options.words;
    fill_config((uint8_t *)ring + config);
    lane->pid = pid;
    lane->ring = ring;
    lane->words = (uint64_t *)((uint8_t *)ring + words);
    lanes_count++;
    return fd;
}

/* ---- answering ----------------------------------------------------------------------------------- */

static int64_t answer_ask(struct lane *lane)
{
    struct sp_ring_event event;
    memcpy(&event, lane->ring->ask, sizeof event);
    if (sizeof event + event.size > SP_ASK_BYTES)
        fail("ask");
    print_body("ask", lane, &event, lane->ring->ask + sizeof event);
    /* Without a kernel layer the agent asks about every socket; those that can be watched in
     * use are free. */
    bool socket = event.kind == SP_KIND_SOCKET &&
                  !memmem(lane->ring->ask, sizeof event + event.size, "netlink", 7);
    bool denied = !options.allow && !socket;
    snprintf(lane->ring->answer, sizeof lane->ring->answer, "%s",
             denied ? "denied by the harness; grant it to allow it" : "");
    return denied;
}

static int64_t answer_lookup(struct lane *lane, uint64_t slot, uint64_t answered)
{
    if (slot >= SP_SLOTS)
        fail("lookup");
    struct sp_ring_slot *s = &lane->ring->slots[slot];
    fprintf(out, "{\"row\":\"lookup\",\"pid\":%d,\"answered\":%llu", lane->pid,
            (unsigned long long)answered);
    print_fields(s->body, s->size);
    fputs("}\n", out);
    if (answered || !options.network)
        return 0;
    snprintf((char *)s->body, sizeof s->body, "the harness denies the lookup");
    return 1;
}

static int64_t answer(pid_t pid, const struct sp_channel_request *q, int *ret_fd)
{
    struct lane *lane = find_lane(pid);
    if (q->op == SP_CALL_HELLO) {
        fprintf(out, "{\"row\":\"hello\",\"pid\":%d,\"how\":%llu,\"version\":%llu}\n",
                pid, (unsigned long long)q->a1, (unsigned long long)q->a2 >> 16);
        *ret_fd = make_lane(pid);
        return 0;
    }
    if (!lane)
        fail("no lane");
    drain(lane);
    switch (q->op) {
    case SP_CALL_ASK:
        return answer_ask(lane);
    case SP_CALL_LOOKUP:
        return answer_lookup(lane, q->a1, q->a2);
    default:
        return 0;
    }
}

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static void send_answer(int to, int64_t value, int fd)
{
    struct iovec part = {.iov_base = &value, .iov_len = sizeof value};
    union control control = {0};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
        value = fd;
    }
    if (sendmsg(to, &m, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        fail("sendmsg");
}

/* False: every process of the guest has let go of the channel. */
static bool serve(int channel)
{
    struct sp_channel_request request;
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    union control control;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    ssize_t n = recvmsg(channel, &m, MSG_CMSG_CLOEXEC);
    if (n == 0)
        return false;
    if (n != (ssize_t)sizeof request)
        fail("request");
    struct ucred cred = {0};
    int reply = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&cred, CMSG_DATA(c), sizeof cred);
        else
            memcpy(&reply, CMSG_DATA(c), sizeof reply);
    }
    int fd = -1;
    int64_t value = answer(cred.pid, &request, &fd);
    if (reply >= 0) {
        send_answer(reply, value, fd);
        close(reply);
    }
    if (fd >= 0)
        close(fd);
    return true;
}

/* ---- starting ---------------------------------------------------------------------------------------- */

static pid_t start(char **argv, int channel)
{
    char preload[4096];
    char number[16];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (dup2(channel, CHANNEL_FD) < 0)
        fail("dup2");
    const char *own = getenv("HARNESS_PRELOAD");
    snprintf(preload, sizeof preload, "%s/libsandpit-stub.so%s%s", options.folder,
             own ? ":" : "", own ? own : "");
    snprintf(number, sizeof number, "%d", CHANNEL_FD);
    setenv("LD_PRELOAD", preload, 1);
    unsetenv("HARNESS_PRELOAD");
    setenv(SP_CHANNEL_VARIABLE, number, 1);
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

static enum sp_calls_level level_named(const char *name)
{
    const char *const names[] = {"off", "first", "folded", "all"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum sp_calls_level)i;
    errno = EINVAL;
    fail(name);
    return SP_CALLS_OFF;
}

static void take_options(int argc, char **argv)
{
    int option;
    out = stdout;
    while ((option = getopt(argc, argv, "+o:s:c:p:P:i:nw:ar")) != -1) {
        switch (option) {
        case 'o':
            out = fopen(optarg, "we");
            break;
        case 's':
            options.folder = optarg;
            break;
        case 'c':
            options.calls = level_named(optarg);
            break;
        case 'p':
            options.python[options.python_count++] = optarg;
            break;
        case 'P':
            options.program = optarg;
            break;
        case 'i':
            options.imports[options.imports_count++] = optarg;
            break;
        case 'n':
            options.network = true;
            break;
        case 'a':
            options.allow = true;
            break;
        case 'r':
            options.opens = true;
            break;
        case 'w':
            options.words = strtoull(optarg, NULL, 10);
            break;
        default:
            exit(70);
        }
    }
    if (!out || !options.folder || !argv[optind])
        fail("usage: harness -s FOLDER [options] -- program arguments");
}

int main(int argc, char **argv)
{
    int pair[2];
    int on = 1;
    int status = 0;
    take_options(argc, argv);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        fail("socketpair");
    pid_t pid = start(argv + optind, pair[1]);
    close(pair[1]);
    bool open = true;
    while (open) {
        struct pollfd p = {.fd = pair[0], .events = POLLIN};
        if (poll(&p, 1, 2) < 0 && errno != EINTR)
            fail("poll");
        if (p.revents)
            open = serve(pair[0]);
        else
            for (size_t i = 0; i < lanes_count; i++)
                print_slots(&lanes[i]);
    }
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    for (size_t i = 0; i < lanes_count; i++)
        drain(&lanes[i]);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(out, "{\"row\":\"exit\",\"code\":%d,\"lanes\":%zu,\"frames\":%u}\n", code,
            lanes_count, lanes_count ? lanes[0].ring->frames.version_hex >> 16 : 0);
    return code;
}
