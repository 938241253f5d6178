#include "supervise/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/json.h"
#include "supervise/shared_memory.h"

#define BLOCK       512u
#define TMPFS_MAGIC 0x01021994

enum place {
    PLACE_UNKNOWN,
    PLACE_DISK,
    PLACE_MEMORY,
};

enum change {
    CHANGE_NONE,
    CHANGE_CREATED,
    CHANGE_CHANGED,
    CHANGE_DELETED,
};

void sp_files_init(struct sp_files *files)
{
    *files = (struct sp_files){0};
    sp_buffer_init(&files->texts, SP_FILES_BYTES);
}

void sp_files_release(struct sp_files *files)
{
    free(files->items);
    sp_buffer_release(&files->texts);
    sp_spill_release(&files->spill);
    *files = (struct sp_files){0};
}

static uint64_t hash_of(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return hash;
}

static int64_t in_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool known(const struct sp_files *files, uint64_t hash, const char *path)
{
    for (uint32_t i = 0; i < files->count; i++)
        if (files->items[i].hash == hash &&
            strcmp(files->texts.data + files->items[i].path, path) == 0)
            return true;
    return false;
}

static bool make_room(struct sp_files *files)
{
    if (files->count < files->room)
        return true;
    uint32_t room = files->room == 0 ? 16 : files->room * 2;
    if (room > SP_FILES_MAX)
        return false;
    struct sp_file_note *items = realloc(files->items, room * sizeof *items);
    if (items == NULL)
        return false;
    files->items = items;
    files->room = room;
    return true;
}

void sp_files_note(struct sp_files *files, const char *path)
{
    uint64_t hash = hash_of(path);
    if (known(files, hash, path))
        return;
    size_t offset = files->texts.size;
    sp_buffer_append(&files->texts, path, strlen(path) + 1);
    if (files->texts.failed || !make_room(files)) {
        files->missed++;
        sp_spill_note(&files->spill, path, hash);
        return;
    }
    struct sp_file_note note = {.hash = hash, .path = (uint32_t)offset};
    struct stat st;
    if (lstat(path, &st) == 0) {
        note.existed = true;
        note.device = st.st_dev;
        note.inode = st.st_ino;
        note.size_bytes = (uint64_t)st.st_size;
        note.blocks = (uint64_t)st.st_blocks;
        note.modified_ns = in_ns(st.st_mtim);
        note.changed_ns = in_ns(st.st_ctim);
    }
    files->items[files->count++] = note;
}

static enum place place_of(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC ? PLACE_MEMORY
                                                              : PLACE_DISK;
}

void sp_files_grown(struct sp_files *files, uint64_t *ret_bytes, uint64_t *ret_memory)
{
    *ret_bytes = sp_spill_grown(&files->spill);
    *ret_memory = 0;
    for (uint32_t i = 0; i < files->count; i++) {
        struct sp_file_note *note = &files->items[i];
        const char *path = files->texts.data + note->path;
        struct stat st;
        if (lstat(path, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
            continue;
        bool same =
            note->existed && note->device == st.st_dev && note->inode == st.st_ino;
        uint64_t before = same ? note->blocks : 0;
        if ((uint64_t)st.st_blocks <= before)
            continue;
        if (note->place == PLACE_UNKNOWN)
            note->place = (uint8_t)place_of(path);
        uint64_t grown = ((uint64_t)st.st_blocks - before) * BLOCK;
        *ret_bytes += grown;
        *ret_memory += note->place == PLACE_MEMORY ? grown : 0;
    }
}

bool sp_files_reached(const struct sp_files *files, uint64_t size, uint32_t *next,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count && i < files->count; i++) {
        const struct sp_file_note *note = &files->items[(*next)++ % files->count];
        struct stat st;
        if (note->size_bytes < size &&
            lstat(files->texts.data + note->path, &st) == 0 && S_ISREG(st.st_mode) &&
            (uint64_t)st.st_size >= size)
            return true;
    }
    return false;
}

bool sp_files_made(const struct sp_files *files, const char *path)
{
    uint64_t hash = hash_of(path);
    for (uint32_t i = 0; i < files->count; i++)
        if (files->items[i].hash == hash &&
            strcmp(files->texts.data + files->items[i].path, path) == 0)
            return !files->items[i].existed;
    return false;
}

void sp_files_remove_shared_memory(const struct sp_files *files,
                                   const struct sp_shared_memory *own)
{
    static const char folder[] = "/dev/shm/";
    for (uint32_t i = 0; i < files->count; i++) {
        const char *path = files->texts.data + files->items[i].path;
        struct stat st;
        /* A folder on the way might have become a link to elsewhere; such memory lies in none. */
        if (!files->items[i].existed && strncmp(path, folder, sizeof folder - 1) == 0 &&
            strchr(path + sizeof folder - 1, '/') == NULL && lstat(path, &st) == 0 &&
            S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            (own == NULL || sp_shared_memory_has(own, &st)))
            unlink(path);
    }
}

static enum change became(const struct sp_files *files, const struct sp_file_note *note,
                          struct stat *ret_now)
{
    bool exists = lstat(files->texts.data + note->path, ret_now) == 0;
    if (!note->existed)
        return exists ? CHANGE_CREATED : CHANGE_NONE;
    if (!exists)
        return CHANGE_DELETED;
    bool same = note->device == ret_now->st_dev && note->inode == ret_now->st_ino &&
                note->size_bytes == (uint64_t)ret_now->st_size &&
                note->modified_ns == in_ns(ret_now->st_mtim) &&
                note->changed_ns == in_ns(ret_now->st_ctim);
    return same || S_ISCHR(ret_now->st_mode) ? CHANGE_NONE : CHANGE_CHANGED;
}

static bool lies_below(const char *path, const char *folder)
{
    size_t n = folder != NULL ? strlen(folder) : 0;
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

static void write_list(const struct sp_files *files, enum change wanted,
                       const char *except, struct sp_buffer *to)
{
    sp_buffer_text(to, "[");
    for (uint32_t i = 0; i < files->count; i++) {
        struct stat now;
        const char *path = files->texts.data + files->items[i].path;
        if (lies_below(path, except) || became(files, &files->items[i], &now) != wanted)
            continue;
        sp_buffer_text(to,
                       to->data[to->size - 1] == '[' ? "{\"path\":" : ",{\"path\":");
        sp_json_string(to, path, strlen(path));
        if (wanted != CHANGE_DELETED && S_ISREG(now.st_mode)) {
            sp_json_key(to, "size");
            sp_json_uint(to, (uint64_t)now.st_size);
        }
        sp_buffer_text(to, "}");
    }
    sp_buffer_text(to, "]");
}

void sp_files_write(const struct sp_files *files, const char *except,
                    struct sp_buffer *to)
{
    sp_buffer_text(to, "{\"created\":");
    write_list(files, CHANGE_CREATED, except, to);
    sp_buffer_text(to, ",\"changed\":");
    write_list(files, CHANGE_CHANGED, except, to);
    sp_buffer_text(to, ",\"deleted\":");
    write_list(files, CHANGE_DELETED, except, to);
    sp_buffer_text(to, "}");
}
