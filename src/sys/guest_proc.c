/* Walks into procfs, where some names mean whoever looks: step by step, as the guest would. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/guest.h"

#define PROC_ROOT_INO 1
#define LINKS_MAX     40 /* as in the kernel */
#define STEPS_MAX     4096

struct walk {
    pid_t tid;
    pid_t pid; /* of its process, once it is asked for */
    int at;    /* the folder that was come to */
    bool follow;
    bool self; /* the way went by one of these names */
    bool thread_self;
    bool through; /* it went through procfs */
    unsigned links;
    unsigned steps;
    size_t from; /* in the text: what is to be walked from there */
    char text[PATH_MAX];
};

static int begin(pid_t tid, int dirfd, const char *path)
{
    return path[0] == '/' ? open("/", O_PATH | O_CLOEXEC)
                          : sp_guest_open_fd(tid, dirfd);
}

/* As procfs's links of these names have it. */
static void own_folder(const struct walk *w, bool thread, char to[PATH_MAX])
{
    int n = snprintf(to, PATH_MAX, "%d", (int)w->pid);
    if (thread)
        snprintf(to + n, PATH_MAX - (size_t)n, "/task/%d", (int)w->tid);
}

/* Calls the thread's own folder by the name that the way went by. */
static void name_own(const struct walk *w, bool thread, char path[PATH_MAX])
{
    char own[PATH_MAX];
    char rest[PATH_MAX];
    static const char proc[] = "/proc/";
    const char *below = path + sizeof proc - 1;
    own_folder(w, thread, own);
    size_t size = strlen(own);
    if (strncmp(path, proc, sizeof proc - 1) != 0 || strncmp(below, own, size) != 0 ||
        (below[size] != '/' && below[size] != '\0'))
        return;
    snprintf(rest, sizeof rest, "%s", below + size);
    snprintf(path, PATH_MAX, "%s%s%.*s", proc, thread ? "thread-self" : "self",
             PATH_MAX - 24, rest);
}

/* The text of the link `link`, called `name`, for the thread. false: it is a magic one, which has
 * none. */
static bool link_text(struct walk *w, int link, const char *name, char to[PATH_MAX])
{
    struct sp_guest_ids ids;
    struct stat st;
    struct stat own;
    if (sp_guest_in_proc(link)) {
        /* Of another procfs, mounted elsewhere, the numbers may be others. */
        bool top = fstat(w->at, &st) == 0 && st.st_ino == PROC_ROOT_INO &&
                   stat("/proc", &own) == 0 && own.st_dev == st.st_dev;
        bool thread = strcmp(name, "thread-self") == 0;
        if (top && (thread || strcmp(name, "self") == 0)) {
            if (!sp_guest_ids(w->tid, &ids))
                return false;
            w->pid = ids.pid;
            *(thread ? &w->thread_self : &w->self) = true;
            own_folder(w, thread, to);
            return true;
        }
        if (!top)
            return false;
    }
    ssize_t n = readlinkat(link, "", to, PATH_MAX - 1);
    to[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* Goes on from the folder that a magic link of a process of the run leads to. */
static bool follow_magic(struct walk *w, const char *name, const char *behind)
{
    char place[PATH_MAX];
    char self[40];
    char folder[SP_GUEST_PROC_MAX];
    struct stat st;
    const char *rest;
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->at);
    if (behind[strspn(behind, "/")] == '\0' || !sp_guest_link_path(self, place) ||
        !sp_guest_proc_path(w->tid, place, folder, &rest))
        return false;
    sp_auto_fd next = openat(w->at, name, O_PATH | O_CLOEXEC);
    if (next < 0 || fstat(next, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    sp_close_fd(&w->at);
    w->at = sp_steal_fd(&next);
    w->from = (size_t)(behind - w->text);
    return true;
}

/* Goes on behind a link. false: not through this one. */
static bool follow_link(struct walk *w, int link, const char *name, const char *behind)
{
    char text[PATH_MAX];
    char joined[PATH_MAX];
    if ((behind[0] == '\0' && !w->follow) || w->links++ == LINKS_MAX)
        return false;
    if (!link_text(w, link, name, text))
        return follow_magic(w, name, behind);
    if (snprintf(joined, sizeof joined, "%s%s", text, behind) >= (int)sizeof joined)
        return false;
    if (text[0] == '/') {
        sp_close_fd(&w->at);
        w->at = open("/", O_PATH | O_CLOEXEC);
    }
    memcpy(w->text, joined, strlen(joined) + 1);
    w->from = 0;
    return w->at >= 0;
}

/* One name further. false: here the walk ends. */
static bool step(struct walk *w)
{
    char name[NAME_MAX + 1];
    struct stat st;
    const char *from = w->text + w->from;
    size_t size;
    for (;;) { /* slashes, and names that go nowhere */
        from += strspn(from, "/");
        size = strcspn(from, "/");
        if (size != 1 || from[0] != '.' || from[1] == '\0')
            break;
        from += size;
    }
    if (size == 0 || size > NAME_MAX || w->steps++ == STEPS_MAX)
        return false;
    memcpy(name, from, size);
    name[size] = '\0';
    sp_auto_fd next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || fstat(next, &st) != 0)
        return false;
    if (S_ISLNK(st.st_mode))
        return follow_link(w, next, name, from + size);
    if (!S_ISDIR(st.st_mode))
        return false;
    sp_close_fd(&w->at);
    w->at = sp_steal_fd(&next);
    w->from = (size_t)(from + size - w->text);
    return true;
}

bool sp_guest_proc_walk(pid_t tid, int dirfd, const char *path, bool follow,
                        char ret_path[PATH_MAX])
{
    struct walk w = {.tid = tid, .at = begin(tid, dirfd, path), .follow = follow};
    char name[40];
    char place[PATH_MAX];
    snprintf(w.text, sizeof w.text, "%s", path);
    do
        w.through = w.through || (w.at >= 0 && sp_guest_in_proc(w.at));
    while (w.at >= 0 && step(&w));
    bool found = w.at >= 0 && w.through;
    snprintf(name, sizeof name, "/proc/self/fd/%d", w.at);
    found = found && sp_guest_link_path(name, place);
    sp_close_fd(&w.at);
    if (found && w.thread_self)
        name_own(&w, true, place);
    if (found && w.self)
        name_own(&w, false, place);
    const char *rest = w.text + w.from;
    if (found && strcmp(place, "/") == 0 && rest[0] != '\0')
        place[0] = '\0';
    bool slash = rest[0] != '\0' && rest[0] != '/';
    return found && w.steps <= STEPS_MAX &&
           snprintf(ret_path, PATH_MAX, "%s%s%s", place, slash ? "/" : "", rest) <
               PATH_MAX;
}
