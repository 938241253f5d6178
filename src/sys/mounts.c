#include "sys/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"

/* A line of /proc/self/mountinfo (proc_pid_mountinfo(5)): what of its file system it shows, where. */
struct mount {
    char root[PATH_MAX];
    char place[PATH_MAX];
};

/* Blanks and the like stand there as \ooo. */
static void take_escaped(const char *text, size_t size, char to[PATH_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < size && n < PATH_MAX - 1; i++) {
        if (text[i] == '\\' && i + 3 < size) {
            to[n++] = (char)((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                             (text[i + 3] - '0'));
            i += 3;
        } else {
            to[n++] = text[i];
        }
    }
    to[n] = '\0';
}

static bool parse(const char *line, struct mount *ret_mount)
{
    for (int field = 0; field < 3; field++) {
        line += strcspn(line, " ");
        line += *line == ' ';
    }
    const size_t root = strcspn(line, " ");
    if (line[root] != ' ')
        return false;
    take_escaped(line, root, ret_mount->root);
    line += root + 1;
    take_escaped(line, strcspn(line, " "), ret_mount->place);
    return ret_mount->root[0] == '/' && ret_mount->place[0] == '/';
}

/* What of `path` lies below `root`, with its slash; NULL: it does not. */
static const char *rest_below(const char *path, const char *root)
{
    const size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path + n;
}

static bool each_mount(bool (*each)(void *context, const struct mount *mount),
                       void *context)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    sp_auto_free char *line = NULL;
    size_t capacity = 0;
    static struct mount mount; /* large */
    bool found = false;
    while (file != NULL && !found && getline(&line, &capacity, file) > 0)
        found = parse(line, &mount) && each(context, &mount);
    if (file != NULL)
        fclose(file);
    return found;
}

struct search {
    const char *path;
    dev_t device;
    ino_t inode;
    size_t place_size;     /* of the innermost mount above it */
    char inside[PATH_MAX]; /* the path within the file system */
    char *found;
};

static bool find_inside(void *context, const struct mount *mount)
{
    struct search *s = context;
    const char *rest = rest_below(s->path, mount->place);
    const size_t size = strlen(mount->place);
    if (rest != NULL && size >= s->place_size) {
        const char *root = strcmp(mount->root, "/") == 0 ? "" : mount->root;
        s->place_size = size;
        snprintf(s->inside, sizeof s->inside, "%s%s", root, rest);
    }
    return false;
}

static bool shows_it(void *context, const struct mount *mount)
{
    struct search *s = context;
    const char *rest = rest_below(s->inside, mount->root);
    struct stat st;
    if (rest == NULL)
        return false;
    const char *place = strcmp(mount->place, "/") == 0 ? "" : mount->place;
    if (snprintf(s->found, PATH_MAX, "%s%s", place, rest) >= PATH_MAX ||
        strcmp(s->found, s->path) == 0)
        return false;
    return stat(s->found, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode;
}

bool sp_mounts_other_name(const char *path, dev_t device, ino_t inode,
                          char ret_path[PATH_MAX])
{
    static struct search search; /* large */
    search = (struct search){
        .path = path, .device = device, .inode = inode, .found = ret_path};
    each_mount(find_inside, &search);
    return each_mount(shows_it, &search);
}
