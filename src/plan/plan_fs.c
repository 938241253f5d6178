/* What the guest's Landlock domain lets it read and write by itself.
 *
 * Granted is what the policy allows as a whole: a folder in which nothing is denied, now or later.
 * Everything else that it allows is the supervisor's to open (supervise/broker.c).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "plan/plan.h"
#include "policy/pattern.h"
#include "sys/landlock.h"
#include "sys/mounts.h"
#include "sys/program_file.h"
#include "sys/real_path.h"

#define WRITE_RIGHTS (SP_FS_WRITE_FILE | SP_FS_TRUNCATE)
#define CHANGE_RIGHTS                                                                  \
    (WRITE_RIGHTS | SP_FS_REMOVE_DIR | SP_FS_REMOVE_FILE | SP_FS_MAKE_DIR |            \
     SP_FS_MAKE_REG | SP_FS_MAKE_SOCK | SP_FS_MAKE_FIFO | SP_FS_MAKE_SYM |             \
     SP_FS_REFER)
#define READ_RIGHTS (SP_FS_READ_FILE | SP_FS_READ_DIR)
/* Those of them that mean something for what is no folder. */
#define FILE_RIGHTS (WRITE_RIGHTS | SP_FS_READ_FILE)

/* Where the kernel itself, or devices, can be written to: procfs that is mounted for a root folder
 * which is being put together, for example. Read once: rules may name many folders. */
struct system_mounts {
    bool known;
    bool failed;             /* nothing is known: no folder is taken for free of them */
    struct sp_buffer places; /* each NUL-terminated */
};

static bool system_kind(const char *kind)
{
    static const char *const kinds[] = {
        "proc",    "sysfs",      "cgroup",  "cgroup2",  "devtmpfs",   "debugfs",
        "tracefs", "securityfs", "bpf",     "configfs", "efivarfs",   "pstore",
        "fusectl", "selinuxfs",  "smackfs", "mqueue",   "binfmt_misc"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static bool note_system_mount(void *context, const struct sp_mount *mount)
{
    struct system_mounts *m = context;
    if (system_kind(mount->kind))
        sp_buffer_append(&m->places, mount->place, strlen(mount->place) + 1);
    return false;
}

static void find_system_mounts(struct system_mounts *m)
{
    m->known = true;
    sp_buffer_init(&m->places, 1u << 20);
    m->failed = sp_mounts_each(note_system_mount, m) < 0 || m->places.failed;
}

static bool system_below(const char *path)
{
    static struct system_mounts mounts;
    size_t length = strlen(path);
    if (!mounts.known)
        find_system_mounts(&mounts);
    for (size_t at = 0; at < mounts.places.size;
         at += strlen(mounts.places.data + at) + 1) {
        const char *place = mounts.places.data + at;
        if (strncmp(place, path, length) == 0 && place[length] == '/')
            return true;
    }
    return mounts.failed;
}

/* A folder above the system's own is no place to write in unwatched. */
static bool grantable(const char *path)
{
    static const char *const system[] = {"/proc", "/sys", "/dev"};
    if (strcmp(path, "/") == 0)
        return false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (sp_pattern_below(path, system[i]))
            return false;
    return !system_below(path);
}

static bool granted(const struct sp_plan_paths *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (sp_pattern_below(path, list->items[i]))
            return true;
    return false;
}

/* Whether there is nothing to grant there: a folder above it is granted, or there is no room left;
 * what is not granted the broker opens. */
static bool settled(const struct sp_plan_paths *list, const char *path)
{
    return list->count == SP_PLAN_PATHS_MAX || granted(list, path);
}

bool sp_plan_kernel_reads(const struct sp_plan *plan, const char *path)
{
    bool bound = sp_plan_reads_bound(plan) && plan->host.landlock_abi >= 1;
    return !bound || granted(&plan->readable, path);
}

/* Whether `above` is `file` or a folder above it. `file` NULL: there is none. */
static bool holds(const char *above, const char *file)
{
    return file != NULL && sp_pattern_below(file, above);
}

/* What the policy says about all that lies there, and what holds under every one. */
static enum sp_cover read_cover(const struct sp_plan *plan, const char *path)
{
    enum sp_cover cover = sp_policy_observes(plan->policy)
                              ? SP_COVER_ALLOWED
                              : sp_policy_cover(plan->policy, SP_LIST_READ, path);
    if (cover != SP_COVER_ALLOWED || !holds(path, plan->hidden))
        return cover;
    return strcmp(path, plan->hidden) == 0 ? SP_COVER_DENIED : SP_COVER_MIXED;
}

/* Keeps the path, and grants rights below it; once for each path. A link grants nothing: what it
 * leads to may be denied, and where it is not it is named as well. */
static int grant(struct sp_plan *plan, struct sp_plan_paths *list, const char *path,
                 uint64_t rights, struct sp_error *reterr)
{
    /* A right is granted on an object: what is made later has none. */
    struct stat st;
    size_t size = strlen(path) + 1;
    if ((list == &plan->readable && holds(path, plan->hidden)) || settled(list, path) ||
        size > sizeof plan->text - plan->text_used || lstat(path, &st) != 0 ||
        S_ISLNK(st.st_mode))
        return 0;
    char *text = plan->text + plan->text_used;
    memcpy(text, path, size);
    plan->text_used += size;
    list->items[list->count++] = text;
    return sp_landlock_grant(&plan->guest, text,
                             S_ISDIR(st.st_mode) ? rights : rights & FILE_RIGHTS,
                             reterr);
}

static bool holds_own(const struct sp_plan *plan, const char *folder)
{
    for (size_t i = 0; i < plan->own_count; i++)
        if (holds(folder, plan->own[i]))
            return true;
    return false;
}

/* `path` holds no links: those of rules were followed when the policy was bound. What became one
 * since grants nothing. */
static int grant_change(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    struct stat st;
    if (settled(&plan->writable, path) || lstat(path, &st) != 0 ||
        S_ISLNK(st.st_mode) || !grantable(path) || holds_own(plan, path))
        return 0;
    if (plan->writes_judged &&
        sp_policy_cover(plan->policy, SP_LIST_WRITE, path) != SP_COVER_ALLOWED)
        return 0;
    return grant(plan, &plan->writable, path,
                 plan->writes_judged ? CHANGE_RIGHTS : WRITE_RIGHTS, reterr);
}

static int grant_read(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    /* A process's own folder there is another one for each: the broker finds it. */
    if (strncmp(path, "/proc/", 6) == 0 || settled(&plan->readable, path) ||
        read_cover(plan, path) != SP_COVER_ALLOWED)
        return 0;
    return grant(plan, &plan->readable, path, READ_RIGHTS, reterr);
}

/* Every folder and file that an allow rule names as it is. */
static int grant_rules(struct sp_plan *plan, enum sp_list list,
                       int (*each)(struct sp_plan *plan, const char *path,
                                   struct sp_error *reterr),
                       struct sp_error *reterr)
{
    const struct sp_policy_rule *rules = sp_policy_rules(plan->policy);
    int code = 0;
    for (uint32_t i = 0; i < plan->policy->rules_count && code == 0; i++)
        if (rules[i].list == list && rules[i].action == SP_ALLOW &&
            rules[i].shape == SP_SHAPE_PLAIN)
            code = each(plan, sp_policy_text(plan->policy, rules[i].pattern), reterr);
    return code;
}

/* Terminals and null are the guest's under every policy. */
static int grant_nodes(struct sp_plan *plan, struct sp_error *reterr)
{
    static const char *const nodes[] = {"/dev/null", "/dev/tty", "/dev/pts"};
    int code = 0;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes && code == 0; i++)
        code = grant(plan, &plan->writable, nodes[i], WRITE_RIGHTS, reterr);
    return code;
}

static int grant_writes(struct sp_plan *plan, const struct sp_places *places,
                        struct sp_error *reterr)
{
    char real[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    if (temporary == NULL || temporary[0] == '\0')
        temporary = "/tmp";
    int code = grant_change(plan, places->work, reterr);
    if (code == 0)
        code = sp_real_path(temporary, real) ? grant_change(plan, real, reterr) : 0;
    if (code == 0)
        code = grant_rules(plan, SP_LIST_WRITE, grant_change, reterr);
    /* Others' shared memory lies there too: where changes are judged, each name is. */
    if (code == 0 && !plan->writes_judged)
        code = grant(plan, &plan->writable, "/dev/shm", WRITE_RIGHTS, reterr);
    return code == 0 ? grant_nodes(plan, reterr) : code;
}

#define ENTRIES_DEPTH 3

/* The entries of a folder in which nothing is denied. Programs are read by the kernel when they are
 * started, which the supervisor cannot do for it: where any may be, folders in which something is
 * denied are looked into, too. */
static int grant_entries(struct sp_plan *plan, const char *folder, int depth,
                         bool only_folders, struct sp_error *reterr)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    bool deeper =
        depth < ENTRIES_DEPTH && !sp_policy_restricts(plan->policy, SP_LIST_PROCESS);
    int code = 0;
    while (entries != NULL && code == 0 && (entry = readdir(entries)) != NULL) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s",
                         strcmp(folder, "/") == 0 ? "" : folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            entry->d_type == DT_LNK || (only_folders && entry->d_type != DT_DIR) ||
            n <= 0 || (size_t)n >= sizeof path)
            continue;
        if (deeper && entry->d_type == DT_DIR && strcmp(path, "/proc") != 0 &&
            read_cover(plan, path) == SP_COVER_MIXED)
            code = grant_entries(plan, path, depth + 1, only_folders, reterr);
        else
            code = grant_read(plan, path, reterr);
    }
    if (entries != NULL)
        closedir(entries);
    return code;
}

/* Of a folder of which some is denied. */
static int grant_rest(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    if (read_cover(plan, path) != SP_COVER_MIXED)
        return 0;
    return grant_entries(plan, path, 1, false, reterr);
}

/* The outermost folder on the way to `path` in which nothing is denied: one grant for many. */
static int grant_widest(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    char folder[PATH_MAX];
    size_t before = plan->readable.count;
    int code = 0;
    for (size_t at = 1; code == 0 && plan->readable.count == before &&
                        !settled(&plan->readable, path) && path[at - 1] != '\0';
         at++) {
        at += strcspn(path + at, "/");
        if (snprintf(folder, sizeof folder, "%.*s", (int)at, path) < PATH_MAX)
            code = grant_read(plan, folder, reterr);
    }
    return code;
}

static int grant_each(struct sp_plan *plan, const char *const *paths,
                      struct sp_error *reterr)
{
    int code = 0;
    for (; paths != NULL && *paths != NULL && code == 0; paths++)
        code = grant_widest(plan, *paths, reterr);
    return code;
}

/* The kernel itself reads a program that is started, and its loader: no broker can do that. */
static int grant_program(struct sp_plan *plan, const char *path,
                         struct sp_error *reterr)
{
    struct sp_program_file file;
    char real[PATH_MAX];
    struct stat st;
    sp_auto_fd fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        !sp_real_path(path, real) ||
        sp_policy_path(plan->policy, SP_LIST_READ, real).action == SP_DENY)
        return 0;
    sp_program_file_read(fd, &file);
    int code = grant(plan, &plan->readable, real, SP_FS_READ_FILE, reterr);
    if (code == 0 && file.by[0] == '/' && sp_real_path(file.by, real) &&
        sp_policy_path(plan->policy, SP_LIST_READ, real).action == SP_ALLOW)
        code = grant(plan, &plan->readable, real, SP_FS_READ_FILE, reterr);
    return code;
}

static int grant_programs(struct sp_plan *plan, const struct sp_places *places,
                          struct sp_error *reterr)
{
    int code = 0;
    for (const char *const *p = places->python_programs; *p != NULL && code == 0; p++)
        code = grant_program(plan, *p, reterr);
    return code == 0 ? grant_rules(plan, SP_LIST_PROCESS, grant_program, reterr) : code;
}

/* What lies beside the hidden file, and beside each folder on the way to it. Folders first: there is
 * room for so many, and a single file is read as well without. */
static int grant_around_hidden(struct sp_plan *plan, struct sp_error *reterr)
{
    char folder[PATH_MAX];
    int code = 0;
    for (int files = 0; files < 2; files++)
        for (const char *at = plan->hidden; at != NULL && code == 0;
             at = strchr(at + 1, '/')) {
            size_t n = (size_t)(at - plan->hidden);
            snprintf(folder, sizeof folder, "%.*s", n == 0 ? 1 : (int)n, plan->hidden);
            code = grant_entries(plan, folder, ENTRIES_DEPTH, files == 0, reterr);
        }
    return code;
}

/* Reading is granted on what the policy names; where it allows what it does not name, also on the
 * places that a run reads from most. */
static int grant_reads(struct sp_plan *plan, const struct sp_places *places,
                       struct sp_error *reterr)
{
    const char *const own[] = {places->work, places->tmp, NULL};
    int code = grant(plan, &plan->readable, places->agents, READ_RIGHTS, reterr);
    if (code == 0)
        code = grant_programs(plan, places, reterr);
    if (code == 0)
        code = grant_rules(plan, SP_LIST_READ, grant_read, reterr);
    if (code == 0)
        code = grant_rules(plan, SP_LIST_WRITE, grant_read, reterr);
    if (code == 0)
        code = grant_rules(plan, SP_LIST_READ, grant_rest, reterr);
    bool listed = plan->policy->lists[SP_LIST_READ].allow_given != 0;
    if (code != 0 || (listed && !sp_policy_observes(plan->policy)))
        return code;
    /* The nearest first: there is room for so many. */
    code = grant_each(plan, own, reterr);
    if (code == 0)
        code = grant_each(plan, places->python_read, reterr);
    if (code == 0 && read_cover(plan, places->work) == SP_COVER_MIXED)
        code = grant_entries(plan, places->work, ENTRIES_DEPTH, false, reterr);
    if (code == 0)
        code = grant_around_hidden(plan, reterr);
    return code == 0 ? grant_entries(plan, "/", 1, false, reterr) : code;
}

/* An interpreter that may not be read does not start; better to say so before. */
static int check_interpreter(const struct sp_plan *plan, const struct sp_places *places,
                             struct sp_error *reterr)
{
    for (const char *const *p = places->python_programs; *p != NULL; p++) {
        struct sp_verdict v = sp_policy_path(plan->policy, SP_LIST_READ, *p);
        if (v.action == SP_DENY)
            return sp_fail(
                reterr, SP_E_POLICY,
                "the policy '%s' does not let the interpreter '%.200s' be read "
                "(%s, %s:%u): add \"{python}\" to fs.allow_read",
                sp_policy_text(plan->policy, plan->policy->name), *p, v.rule, v.source,
                v.line);
    }
    return 0;
}

int sp_plan_grant(struct sp_plan *plan, const struct sp_places *places,
                  const char *const *own, size_t own_count, struct sp_error *reterr)
{
    plan->own = own;
    plan->own_count = own_count;
    bool enforced = !sp_policy_observes(plan->policy);
    plan->text_used = 0;
    if (plan->host.landlock_abi < 1)
        return 0;
    int code =
        enforced && plan->reads_judged ? check_interpreter(plan, places, reterr) : 0;
    if (code == 0)
        code = grant_writes(plan, places, reterr);
    if (code == 0 && sp_plan_reads_bound(plan))
        code = grant_reads(plan, places, reterr);
    else if (code == 0 && plan->reads_judged)
        code = grant(plan, &plan->readable, "/", READ_RIGHTS, reterr);
    return code;
}
