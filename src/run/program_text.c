#include "run/program_text.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "run/run.h"
#include "sys/real_path.h"

#define PIECE_BYTES 65536u
/* No source is so long: it is data, or never ends. */
#define WHOLE_BYTES_MAX (64u << 20)

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Whether the interpreter looks into the current folder first. */
static bool looks_here(const struct sp_run *run)
{
    const struct sp_run_request *rq = run->request;
    for (size_t i = 0; i < rq->python_options_count; i++)
        if (strpbrk(rq->python_options[i], "IP") != NULL)
            return false;
    for (char *const *one = run->command.envp; *one != NULL; one++)
        if (strncmp(*one, "PYTHONSAFEPATH=", 15) == 0 && (*one)[15] != '\0')
            return false;
    return true;
}

static bool put(char to[PATH_MAX], const char *folder, const char *path,
                const char *ending)
{
    return snprintf(to, PATH_MAX, "%s/%s%s", folder, path, ending) < PATH_MAX;
}

/* The file that -m NAME runs, of those in the folder of the run. */
static bool module_file(const char *name, char to[PATH_MAX])
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    if (getcwd(folder, sizeof folder) == NULL ||
        snprintf(path, sizeof path, "%s", name) >= (int)sizeof path)
        return false;
    for (char *dot = path; (dot = strchr(dot, '.')) != NULL;)
        *dot = '/';
    char package[PATH_MAX];
    bool regular = put(package, folder, path, "/__init__.py") && exists(package);
    if (!regular && put(to, folder, path, ".py") && exists(to))
        return true;
    return put(to, folder, path, "/__main__.py");
}

/* `to` gets the file's name as code objects have it. -1: there is none. */
static int open_program(const struct sp_run *run, char to[PATH_MAX])
{
    const struct sp_run_request *rq = run->request;
    struct stat st;
    switch (rq->kind) {
    case SP_PROGRAM_SCRIPT:
        if (stat(rq->value, &st) != 0)
            return -1;
        if (snprintf(to, PATH_MAX, "%s%s", run->command.program,
                     S_ISDIR(st.st_mode) ? "/__main__.py" : "") >= PATH_MAX)
            return -1;
        break;
    case SP_PROGRAM_MODULE:
        if (!looks_here(run) || !module_file(rq->value, to))
            return -1;
        break;
    case SP_PROGRAM_STDIN:
        snprintf(to, PATH_MAX, "<stdin>");
        return run->stdio[0] >= 0 ? fcntl(run->stdio[0], F_DUPFD_CLOEXEC, 3) : -1;
    default:
        return -1;
    }
    return open(to, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Whether the program may read it as well: its name may be a link to anything, and the trace is for
 * whoever may read that. */
static bool may_be_shown(const struct sp_run *run, int fd)
{
    char name[40];
    char real[PATH_MAX];
    struct stat st;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (run->request->kind == SP_PROGRAM_STDIN)
        return true; /* it was handed that */
    if (!sp_real_path(name, real) || fstat(fd, &st) != 0)
        return false;
    bool hidden = run->signer.page != NULL && st.st_dev == run->signer.place.device &&
                  st.st_ino == run->signer.place.inode;
    return !hidden &&
           (sp_policy_observes(run->policy) ||
            sp_policy_path(run->policy, SP_LIST_READ, real).action == SP_ALLOW);
}

static void take(struct sp_program_text *text, crypto_generichash_state *state,
                 const char *piece, size_t size)
{
    size_t room = SP_SOURCE_BYTES_MAX - text->kept.size;
    crypto_generichash_update(state, (const uint8_t *)piece, size);
    sp_buffer_append(&text->kept, piece, size < room ? size : room);
    text->source.whole_size += size;
}

/* From where it stands, without moving it. false: it is no text. */
static bool take_file(struct sp_program_text *text, crypto_generichash_state *state,
                      int fd)
{
    static char piece[PIECE_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t n = 0;
    while (at >= 0 && text->source.whole_size <= WHOLE_BYTES_MAX &&
           (n = pread(fd, piece, sizeof piece, at)) > 0) {
        if (memchr(piece, '\0', (size_t)n) != NULL)
            return false;
        take(text, state, piece, (size_t)n);
        at += n;
    }
    return at >= 0 && n == 0;
}

bool sp_program_text_read(const struct sp_run *run, struct sp_program_text *ret_text)
{
    const struct sp_run_request *rq = run->request;
    crypto_generichash_state state;
    bool read = false;
    *ret_text = (struct sp_program_text){0};
    sp_buffer_init(&ret_text->kept, SP_SOURCE_BYTES_MAX);
    crypto_generichash_init(&state, NULL, 0, SP_SOURCE_DIGEST_BYTES);
    if (rq->kind == SP_PROGRAM_CODE) {
        snprintf(ret_text->file, sizeof ret_text->file, "<string>");
        take(ret_text, &state, rq->value, strlen(rq->value));
        read = true;
    } else {
        sp_auto_fd fd = open_program(run, ret_text->file);
        read = fd >= 0 && may_be_shown(run, fd) && take_file(ret_text, &state, fd);
    }
    if (!read || ret_text->kept.failed) {
        sp_program_text_release(ret_text);
        return false;
    }
    struct sp_source *source = &ret_text->source;
    source->file = ret_text->file;
    source->file_size = strlen(ret_text->file);
    source->text = ret_text->kept.size > 0 ? ret_text->kept.data : "";
    source->size = ret_text->kept.size;
    crypto_generichash_final(&state, source->digest, sizeof source->digest);
    return true;
}

void sp_program_text_release(struct sp_program_text *text)
{
    sp_buffer_release(&text->kept);
    *text = (struct sp_program_text){0};
}
