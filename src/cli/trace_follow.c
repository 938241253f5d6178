#include "cli/trace_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "cli/trace_commands.h"
#include "cli/trace_filter.h"
#include "read/feed.h"

#define PIECE_BYTES (64u << 10)
#define JSON_MAX    (64u << 20)
#define GROWTH_MS   50 /* how often a file is looked at that may grow */

/* Ctrl-C reaches the program that is followed, too: what it has to say about its end is waited
 * for. */
#define LAST_WORDS_NS UINT64_C(3000000000)

struct follow {
    const struct sp_show_options *options;
    const char *path;
    int fd;            /* owned */
    bool regular;      /* its end may move */
    uint64_t size;     /* read so far */
    bool ended;        /* the `end` was there */
    uint64_t until_ns; /* after an interrupt; 0: none came */
    sigset_t mask;     /* while it waits: interrupts are let in then only */
    struct sp_feed *feed;
    struct sp_event_filter filter;
    struct sp_screen screen;
    struct sp_buffer json;
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupts++;
}

/* A reader that goes away ends this silently; one who started this in the background does not mean
 * it by Ctrl-C. */
static void take_signals(struct follow *f)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    struct sigaction old;
    sigset_t interrupt;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &f->mask);
    sigdelset(&f->mask, SIGINT);
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

static int open_stream(struct follow *f)
{
    struct stat st;
    f->fd = strcmp(f->path, "-") == 0
                ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                : open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: %s", f->path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: %s", f->path, strerror(EISDIR));
    f->regular = S_ISREG(st.st_mode);
    return SP_EXIT_OK;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static bool is_interrupted(struct follow *f)
{
    if (interrupts > 0 && f->until_ns == 0)
        f->until_ns = sp_clock_ns() + LAST_WORDS_NS;
    return interrupts > 1 ||
           (f->until_ns != 0 && (f->regular || sp_clock_ns() >= f->until_ns));
}

/* Waits until there may be something to read. false: an interrupt says that it is enough. */
static bool await(struct follow *f, bool growth)
{
    struct pollfd ready = {.fd = f->fd, .events = POLLIN};
    while (!is_interrupted(f)) {
        struct timespec wait = {.tv_nsec = GROWTH_MS * 1000000};
        if (f->until_ns != 0) {
            const uint64_t now = sp_clock_ns();
            const uint64_t left = f->until_ns > now ? f->until_ns - now : 0;
            wait = (struct timespec){(time_t)(left / 1000000000u),
                                     (long)(left % 1000000000u)};
        }
        const bool limited = growth || f->until_ns != 0;
        const int n = ppoll(&ready, growth ? 0 : 1, limited ? &wait : NULL, &f->mask);
        if (n > 0 || (n == 0 && growth))
            return true;
    }
    return false;
}

/* ---- printing ----------------------------------------------------------------------------- */

/* What only serves to read the rest is not shown unless it is asked for. */
static bool is_shown(const struct follow *f, const struct sp_read_event *e)
{
    if (f->filter.any_kind && !f->options->json &&
        (e->kind == SP_KIND_CHECKPOINT || e->kind == SP_KIND_FUNCTION))
        return false;
    return sp_event_filter_matches(&f->filter, e);
}

static void print(struct follow *f, const struct sp_read_event *e)
{
    if (!f->options->json) {
        sp_show_line(&f->screen, e);
        return;
    }
    sp_buffer_clear(&f->json);
    sp_read_event_json(e, &f->json);
    (void)fwrite(f->json.data, 1, f->json.size, stdout); /* main says so */
}

/* What came in one piece, out in one. An exit code. */
static int take(struct follow *f, const char *data, size_t size)
{
    struct sp_read_event event;
    struct sp_fault fault;
    int got;
    if (!sp_feed_put(f->feed, data, size))
        return sp_cli_error(SP_EXIT_BAD_INPUT, "no memory");
    while ((got = sp_feed_next(f->feed, &event, &fault)) > 0) {
        f->ended |= event.kind == SP_KIND_END;
        if (is_shown(f, &event))
            print(f, &event);
    }
    fflush(stdout);
    return got < 0 ? sp_trace_complain(f->path, &fault) : SP_EXIT_OK;
}

/* At the end of what is there: of a pipe it is the end. */
static bool is_over(const struct follow *f)
{
    struct stat st;
    if (!f->regular)
        return true;
    return fstat(f->fd, &st) == 0 && (uint64_t)st.st_size < f->size;
}

static int follow(struct follow *f)
{
    static char piece[PIECE_BYTES];
    int status = SP_EXIT_OK;
    bool growth = false;
    while (status == SP_EXIT_OK && !f->ended && !ferror(stdout)) {
        if (!await(f, growth))
            return SP_EXIT_SIGNAL + SIGINT;
        const ssize_t n = read(f->fd, piece, sizeof piece);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: %s", f->path, strerror(errno));
        growth = f->regular && n == 0;
        if (n == 0 && is_over(f)) {
            (void)sp_cli_error(SP_EXIT_OK, "%s: cut short: there was no end", f->path);
            break;
        }
        if (n > 0) {
            f->size += (uint64_t)n;
            status = take(f, piece, (size_t)n);
        }
    }
    /* One that came while there was always something to read is still kept back. */
    sigprocmask(SIG_SETMASK, &f->mask, NULL);
    return status == SP_EXIT_OK && interrupts > 0 ? SP_EXIT_SIGNAL + SIGINT : status;
}

int sp_cli_follow(const struct sp_show_options *options, const char *path)
{
    struct follow f = {.options = options, .path = path, .fd = -1};
    take_signals(&f);
    int status = open_stream(&f);
    f.feed = sp_feed_new();
    if (status == SP_EXIT_OK && f.feed == NULL)
        status = sp_cli_error(SP_EXIT_BAD_INPUT, "no memory");
    if (status == SP_EXIT_OK) {
        sp_event_filter_make(options, &f.filter);
        sp_screen_init(&f.screen, sp_color_wanted(options->color, STDOUT_FILENO),
                       isatty(STDOUT_FILENO) ? sp_screen_width(0) : 0);
        sp_buffer_init(&f.json, JSON_MAX);
        status = follow(&f);
        sp_screen_release(&f.screen);
        sp_buffer_release(&f.json);
    }
    sp_feed_free(f.feed);
    sp_close_fd(&f.fd);
    return status;
}
