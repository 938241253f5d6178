#include "sys/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/scope.h"

/* Blanks and the like stand there as \ooo. */
static void take_escaped(const char *text, size_t size, char to[PATH_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < size && n < PATH_MAX - 1; i++) {
        const char *at = text + i;
        bool octal = at[0] == '\\' && i + 3 < size && strspn(at + 1, "01234567") >= 3;
        to[n++] = octal
                      ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'))
                      : *at;
        i += octal ? 3 : 0;
    }
    to[n] = '\0';
}

/* A line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
static bool parse(const char *line, struct sp_mount *ret_mount)
{
    const char *behind = strstr(line, " - ");
    for (int field = 0; field < 3; field++) {
        line += strcspn(line, " ");
        line += *line == ' ';
    }
    const size_t root = strcspn(line, " ");
    if (line[root] != ' ' || behind == NULL ||
        sscanf(behind, " - %31s", ret_mount->kind) != 1)
        return false;
    take_escaped(line, root, ret_mount->root);
    line += root + 1;
    take_escaped(line, strcspn(line, " "), ret_mount->place);
    return true;
}

/* What of `path` lies below `root`, with its slash; NULL: it does not. */
static const char *rest_below(const char *path, const char *root)
{
    const size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path + n;
}

int sp_mounts_each(bool (*each)(void *context, const struct sp_mount *mount),
                   void *context)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    sp_auto_free char *line = NULL;
    size_t capacity = 0;
    static struct sp_mount mount; /* large */
    bool found = false;
    if (file == NULL)
        return -1;
    while (!found && getline(&line, &capacity, file) > 0)
        found = parse(line, &mount) && each(context, &mount);
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

static bool find_inside(void *context, const struct sp_mount *mount)
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

static bool shows_it(void *context, const struct sp_mount *mount)
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
    snprintf(ret_path, PATH_MAX, "(the mounts cannot be read)");
    return sp_mounts_each(find_inside, &search) < 0 ||
           sp_mounts_each(shows_it, &search) != 0;
}
