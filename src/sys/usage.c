#include "sys/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"

/* Beyond this many, or a quarter of the descriptors that there may be, files are opened for each
 * look. */
#define HELD_MAX 256u
/* How often the children of threads that are not their process's first are looked for. */
#define THREADS_INTERVAL_NS 50000000u
#define CHILDREN_TEXT       16384

enum file { FILE_STAT, FILE_STATM, FILE_CHILDREN };
_Static_assert(FILE_CHILDREN + 1 == SP_USAGE_FILES, "each has its place");

static uint64_t tick_ns(void)
{
    static uint64_t ns;
    if (ns == 0)
        ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    return ns;
}

static uint64_t page_size(void)
{
    static uint64_t size;
    if (size == 0)
        size = (uint64_t)sysconf(_SC_PAGESIZE);
    return size;
}

static uint64_t gathered_here(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_CHILDREN, &u) != 0)
        return 0;
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

void sp_usage_init(struct sp_usage *usage)
{
    *usage = (struct sp_usage){.gathered_ns = gathered_here()};
    struct rlimit files;
    rlim_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;
    usage->held_max = most / 4 / SP_USAGE_FILES < HELD_MAX
                          ? (unsigned)(most / 4 / SP_USAGE_FILES)
                          : HELD_MAX;
    usage->children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
}

static void let_go(struct sp_usage *usage, struct sp_usage_process *p)
{
    for (int i = 0; i < SP_USAGE_FILES; i++)
        sp_close_fd(&p->files[i]);
    usage->held -= p->held;
    p->held = false;
}

static void forget(struct sp_usage *usage, struct sp_usage_process *p)
{
    struct sp_usage_process **at = &usage->buckets[(unsigned)p->pid % SP_USAGE_BUCKETS];
    while (*at != p)
        at = &(*at)->beside;
    *at = p->beside;
    *p->before = p->next;
    if (p->next != NULL)
        p->next->before = p->before;
    usage->count--;
    let_go(usage, p);
    free(p);
}

void sp_usage_release(struct sp_usage *usage)
{
    while (usage->all != NULL)
        forget(usage, usage->all);
    sp_close_fd(&usage->children);
}

static struct sp_usage_process *find(const struct sp_usage *usage, pid_t pid)
{
    struct sp_usage_process *at = usage->buckets[(unsigned)pid % SP_USAGE_BUCKETS];
    while (at != NULL && at->pid != pid)
        at = at->beside;
    return at;
}

static int open_file(const struct sp_usage_process *p, enum file which)
{
    static const char *const names[] = {"stat", "statm", NULL};
    char name[64];
    if (which == FILE_CHILDREN)
        snprintf(name, sizeof name, "/proc/%d/task/%d/children", p->pid, p->pid);
    else
        snprintf(name, sizeof name, "/proc/%d/%s", p->pid, names[which]);
    return open(name, O_RDONLY | O_CLOEXEC);
}

static ssize_t read_file(const struct sp_usage_process *p, enum file which, char *to,
                         size_t size)
{
    sp_auto_fd own = p->held ? -1 : open_file(p, which);
    int fd = p->held ? p->files[which] : own;
    ssize_t n = fd >= 0 ? pread(fd, to, size - 1, 0) : -1;
    if (n >= 0)
        to[n] = '\0';
    return n;
}

/* Time of one process, to the nanosecond: see clock_getcpuclockid(3). */
static uint64_t own_ns(pid_t pid, uint64_t otherwise)
{
    struct timespec t;
    if (clock_gettime((clockid_t)(~(unsigned)pid << 3 | 2u), &t) != 0)
        return otherwise;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct seen {
    uint64_t own_ns;
    uint64_t gathered_ns;
    uint64_t start_ticks;
    unsigned threads;
};

/* false: the process is gone. */
static bool see(const struct sp_usage_process *p, struct seen *ret_seen)
{
    char text[1024];
    uint64_t fields[23] = {0};
    if (read_file(p, FILE_STAT, text, sizeof text) <= 0)
        return false;
    char *at = strrchr(text, ')');
    if (at == NULL || strlen(at) < 4)
        return false;
    at += 3; /* the state, field 3 */
    for (int field = 4; field <= 22; field++)
        fields[field] = strtoull(at + 1, &at, 10);
    ret_seen->own_ns = own_ns(p->pid, (fields[14] + fields[15]) * tick_ns());
    ret_seen->gathered_ns = (fields[16] + fields[17]) * tick_ns();
    ret_seen->threads = (unsigned)fields[20];
    ret_seen->start_ticks = fields[22];
    return true;
}

static uint64_t resident_of(const struct sp_usage_process *p)
{
    char text[128];
    char *at;
    if (read_file(p, FILE_STATM, text, sizeof text) <= 0)
        return 0;
    (void)strtoull(text, &at, 10);
    return strtoull(at, NULL, 10) * page_size();
}

/* Growth of what was gathered that was not seen before: at first the whole of it, then less what
 * processes that are gone were seen to have used. */
struct balance {
    uint64_t gathered;
    uint64_t gone;
};

/* false: it is gone. */
static bool refresh(struct sp_usage *usage, struct sp_usage_process *p,
                    struct balance *balance)
{
    struct seen seen;
    if (!see(p, &seen) || (p->start_ticks != 0 && p->start_ticks != seen.start_ticks)) {
        balance->gone += p->own_ns + p->gathered_ns;
        return false;
    }
    p->start_ticks = seen.start_ticks;
    if (seen.own_ns > p->own_ns) {
        usage->cpu_ns += seen.own_ns - p->own_ns;
        p->own_ns = seen.own_ns;
    }
    if (seen.gathered_ns > p->gathered_ns) {
        balance->gathered += seen.gathered_ns - p->gathered_ns;
        p->gathered_ns = seen.gathered_ns;
    }
    p->threads = seen.threads;
    p->resident = resident_of(p);
    usage->tasks += p->threads;
    usage->resident += p->resident;
    return true;
}

static struct sp_usage_process *add(struct sp_usage *usage, pid_t pid)
{
    if (usage->count >= SP_USAGE_PROCESSES_MAX) {
        usage->beyond = true;
        return NULL;
    }
    struct sp_usage_process *p = calloc(1, sizeof *p);
    if (p == NULL) {
        usage->beyond = true;
        return NULL;
    }
    p->pid = pid;
    p->held = usage->held < usage->held_max;
    for (int i = 0; i < SP_USAGE_FILES; i++)
        p->files[i] = p->held ? open_file(p, (enum file)i) : -1;
    usage->held += p->held;
    if (p->held && (p->files[FILE_STAT] < 0 || p->files[FILE_STATM] < 0))
        let_go(usage, p); /* no descriptor left, or it is gone */
    struct sp_usage_process **bucket =
        &usage->buckets[(unsigned)pid % SP_USAGE_BUCKETS];
    p->beside = *bucket;
    *bucket = p;
    p->next = usage->all;
    p->before = &usage->all;
    if (p->next != NULL)
        p->next->before = &p->next;
    usage->all = p;
    usage->count++;
    return p;
}

void sp_usage_note(struct sp_usage *usage, pid_t pid)
{
    if (find(usage, pid) == NULL)
        (void)add(usage, pid);
}

void sp_usage_see(struct sp_usage *usage, pid_t pid)
{
    struct sp_usage_process *p = find(usage, pid);
    if (p == NULL)
        p = add(usage, pid);
    uint64_t ns = p != NULL ? own_ns(pid, p->own_ns) : 0;
    if (p == NULL || ns <= p->own_ns)
        return;
    usage->cpu_ns += ns - p->own_ns;
    p->own_ns = ns;
}

/* Adds those in a list of numbers that are not known; a list that is longer than the buffer is
 * read on. */
static void add_listed(struct sp_usage *usage, int fd, struct balance *balance)
{
    char text[CHILDREN_TEXT];
    off_t from = 0;
    for (;;) {
        ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, from) : -1;
        if (n <= 0)
            return;
        text[n] = '\0';
        char *at = text;
        char *end = memrchr(text, ' ', (size_t)n);
        if (end == NULL)
            return;
        while (at < end) {
            pid_t pid = (pid_t)strtol(at, &at, 10);
            at += *at == ' ';
            struct sp_usage_process *p =
                find(usage, pid) == NULL ? add(usage, pid) : NULL;
            if (p != NULL && !refresh(usage, p, balance))
                forget(usage, p);
        }
        from += end + 1 - text;
    }
}

static void add_children(struct sp_usage *usage, const struct sp_usage_process *p,
                         bool threads, struct balance *balance)
{
    if (p->held) {
        add_listed(usage, p->files[FILE_CHILDREN], balance);
    } else {
        sp_auto_fd fd = open_file(p, FILE_CHILDREN);
        add_listed(usage, fd, balance);
    }
    if (!threads || p->threads < 2)
        return;
    char name[300];
    snprintf(name, sizeof name, "/proc/%d/task", p->pid);
    DIR *tasks = opendir(name);
    if (tasks == NULL)
        return;
    for (struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks)) {
        if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == p->pid)
            continue;
        snprintf(name, sizeof name, "/proc/%d/task/%s/children", p->pid, e->d_name);
        sp_auto_fd fd = open(name, O_RDONLY | O_CLOEXEC);
        add_listed(usage, fd, balance);
    }
    closedir(tasks);
}

/* New ones come in front of all, where the loop does not meet them: they are looked through until
 * there are none. */
static void discover(struct sp_usage *usage, bool threads, struct balance *balance)
{
    struct sp_usage_process *done = NULL;
    add_listed(usage, usage->children, balance);
    do {
        struct sp_usage_process *first = usage->all;
        for (struct sp_usage_process *p = first; p != done; p = p->next)
            add_children(usage, p, threads, balance);
        done = first;
    } while (usage->all != done);
}

void sp_usage_look(struct sp_usage *usage, uint64_t now_ns)
{
    struct balance balance = {.gone = usage->debt_ns};
    bool threads = now_ns - usage->threads_ns >= THREADS_INTERVAL_NS;
    if (threads)
        usage->threads_ns = now_ns;
    usage->tasks = 0;
    usage->resident = 0;
    usage->beyond = false;
    for (struct sp_usage_process *p = usage->all, *next; p != NULL; p = next) {
        next = p->next;
        if (!refresh(usage, p, &balance))
            forget(usage, p);
    }
    discover(usage, threads, &balance);
    uint64_t gathered = gathered_here();
    balance.gathered += gathered - usage->gathered_ns;
    usage->gathered_ns = gathered;
    /* What is gathered is told in clock ticks: it may lag by one for each process, but no more,
     * or it was never gathered. */
    uint64_t lag = (usage->count + 1) * tick_ns();
    uint64_t short_of =
        balance.gone > balance.gathered ? balance.gone - balance.gathered : 0;
    usage->debt_ns = short_of < lag ? short_of : lag;
    if (balance.gathered > balance.gone)
        usage->cpu_ns += balance.gathered - balance.gone;
}

bool sp_usage_possible(void)
{
    return access("/proc/thread-self/children", R_OK) == 0;
}
