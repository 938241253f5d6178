#include "read/processes.h"

#include <stdlib.h>
#include <string.h>

#include "read/pair_map.h"

#define SLOTS (SP_PROCESSES_MAX * 2)

void sp_processes_init(struct sp_processes *p)
{
    *p = (struct sp_processes){0};
}

void sp_processes_release(struct sp_processes *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        free((char *)p->items[i].path.data);
        free((char *)p->items[i].argv.data);
    }
    free(p->items);
    free(p->slots);
    sp_processes_init(p);
}

/* ---- by number ----------------------------------------------------------------------------- */

/* There are twice as many slots as processes can be. */
static uint32_t *find_slot(const struct sp_processes *p, int64_t pid)
{
    for (uint64_t h = sp_pair_hash(p->seed, pid, 0);; h++) {
        uint32_t *slot = &p->slots[h % SLOTS];
        if (*slot == 0 || p->items[*slot - 1].pid == pid)
            return slot;
    }
}

static struct sp_process *find(const struct sp_processes *p, int64_t pid)
{
    if (p->slots == NULL)
        return NULL;
    const uint32_t slot = *find_slot(p, pid);
    return slot == 0 ? NULL : &p->items[slot - 1];
}

const struct sp_process *sp_processes_find(const struct sp_processes *p, int64_t pid)
{
    return find(p, pid);
}

static bool make_room(struct sp_processes *p)
{
    if (p->slots == NULL) {
        p->slots = calloc(SLOTS, sizeof *p->slots);
        p->seed = sp_pair_seed(p);
    }
    if (p->slots == NULL || p->count == SP_PROCESSES_MAX)
        return false;
    if (p->items != NULL && p->count < p->capacity)
        return true;
    const uint32_t capacity = p->capacity == 0 ? 16 : p->capacity * 2;
    struct sp_process *items = realloc(p->items, capacity * sizeof *items);
    if (items == NULL)
        return false;
    p->items = items;
    p->capacity = capacity;
    return true;
}

/* A new process with that number. NULL: no room. */
static struct sp_process *add(struct sp_processes *p, int64_t pid, uint64_t t_ns)
{
    if (!make_room(p)) {
        p->unlisted++;
        return NULL;
    }
    p->items[p->count] = (struct sp_process){.pid = pid,
                                             .parent = SP_PROCESSES_NONE,
                                             .child = SP_PROCESSES_NONE,
                                             .last_child = SP_PROCESSES_NONE,
                                             .next = SP_PROCESSES_NONE,
                                             .start_ns = t_ns};
    struct sp_process *made = &p->items[p->count];
    *find_slot(p, pid) = ++p->count;
    return made;
}

/* The one with that number, which a trace that lost its fork did not tell of. */
static struct sp_process *find_or_add(struct sp_processes *p, int64_t pid,
                                      uint64_t t_ns)
{
    struct sp_process *found = find(p, pid);
    return found != NULL ? found : add(p, pid, t_ns);
}

/* ---- what events say ----------------------------------------------------------------------- */

static void keep_text(struct sp_text *to, const char *data, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    free((char *)to->data);
    *to = (struct sp_text){copy, (uint32_t)size};
}

static void keep_argv(struct sp_process *one, const struct sp_tape *tape)
{
    char text[SP_PROCESS_ARGV_MAX];
    size_t used = 0;
    const uint32_t list = sp_tape_find(tape, 0, "argv");
    one->argv_cut = sp_tape_true(tape, "argv_cut");
    if (list == 0 || tape->nodes[list].type != SP_JSON_ARRAY)
        return;
    for (uint32_t at = list + 1; at < tape->nodes[list].next;
         at = tape->nodes[at].next) {
        const struct sp_json_node *item = &tape->nodes[at];
        if (item->type != SP_JSON_STRING)
            continue;
        size_t size = item->size;
        if (used + size + 1 > sizeof text) {
            one->argv_cut = true;
            size = sizeof text - used - 1;
            if (size == 0)
                break;
        }
        memcpy(text + used, item->text, size);
        used += size;
        text[used++] = '\0';
        if (used == sizeof text)
            break;
    }
    keep_text(&one->argv, text, used);
}

static void take_start(struct sp_processes *p, const struct sp_read_event *e)
{
    struct sp_process *one = find_or_add(p, e->pid, e->t_ns);
    const uint32_t python = sp_tape_find(e->tape, 0, "interpreter");
    const uint32_t path = python == 0 ? 0 : sp_tape_find(e->tape, python, "path");
    if (one == NULL)
        return;
    one->started = true;
    one->traced = true;
    if (path != 0 && e->tape->nodes[path].type == SP_JSON_STRING)
        keep_text(&one->path, e->tape->nodes[path].text, e->tape->nodes[path].size);
    keep_argv(one, e->tape);
}

static void link_child(struct sp_processes *p, uint32_t parent, uint32_t child)
{
    struct sp_process *above = &p->items[parent];
    p->items[child].parent = parent;
    p->items[child].traced = above->traced;
    if (above->child == SP_PROCESSES_NONE)
        above->child = child;
    else
        p->items[above->last_child].next = child;
    above->last_child = child;
}

static void take_fork(struct sp_processes *p, const struct sp_read_event *e)
{
    const int64_t pid = sp_tape_int(e->tape, "child", e->pid);
    const int64_t parent_pid = sp_tape_int(e->tape, "parent", 0);
    const struct sp_process *above = find(p, parent_pid);
    const uint32_t parent =
        above == NULL ? SP_PROCESSES_NONE : (uint32_t)(above - p->items);
    struct sp_process *one = add(p, pid, e->t_ns);
    if (one == NULL)
        return;
    one->parent_pid = parent_pid;
    if (parent != SP_PROCESSES_NONE)
        link_child(p, parent, (uint32_t)(one - p->items));
}

static void take_exec(struct sp_processes *p, const struct sp_read_event *e)
{
    struct sp_process *one = find_or_add(p, e->pid, e->t_ns);
    const struct sp_json_node *path = sp_tape_text(e->tape, "path");
    if (one == NULL)
        return;
    one->started = true;
    one->traced = sp_tape_true(e->tape, "agent");
    if (path != NULL)
        keep_text(&one->path, path->text, path->size);
    keep_argv(one, e->tape);
}

static void take_exit(struct sp_processes *p, const struct sp_read_event *e)
{
    struct sp_process *one = find_or_add(p, e->pid, e->t_ns);
    const int64_t signal = sp_tape_int(e->tape, "signal", 0);
    if (one == NULL)
        return;
    const int64_t code = sp_tape_int(e->tape, "code", -1);
    one->end = signal > 0  ? SP_PROCESS_KILLED
               : code >= 0 ? SP_PROCESS_EXITED
                           : SP_PROCESS_ENDED;
    one->end_value = signal > 0 ? signal : code >= 0 ? code : 0;
    one->end_ns = e->t_ns;
}

static void take_violation(struct sp_processes *p, const struct sp_read_event *e)
{
    struct sp_process *one = find(p, e->pid);
    const int64_t count = sp_tape_int(e->tape, "count", 1);
    if (one != NULL && !sp_node_is(sp_tape_text(e->tape, "action"), "observe"))
        one->denied += count > 0 ? (uint64_t)count : 1;
}

void sp_processes_add(struct sp_processes *p, const struct sp_read_event *e)
{
    if (e->t_ns > p->last_ns)
        p->last_ns = e->t_ns;
    if (e->tape == NULL)
        return;
    switch (e->kind) {
    case SP_KIND_START:
        take_start(p, e);
        break;
    case SP_KIND_FORK:
        take_fork(p, e);
        break;
    case SP_KIND_EXEC:
        take_exec(p, e);
        break;
    case SP_KIND_EXIT:
        take_exit(p, e);
        break;
    case SP_KIND_VIOLATION:
        take_violation(p, e);
        break;
    default:
        break;
    }
}

uint64_t sp_process_duration(const struct sp_processes *p, const struct sp_process *one)
{
    const uint64_t end = one->end == SP_PROCESS_OPEN ? p->last_ns : one->end_ns;
    return end > one->start_ns ? end - one->start_ns : 0;
}

/* ---- in the order of the tree -------------------------------------------------------------- */

/* The next process from `i` on that has no parent. */
static uint32_t root_from(const struct sp_processes *p, uint32_t i)
{
    for (; i < p->count; i++)
        if (p->items[i].parent == SP_PROCESSES_NONE)
            return i;
    return SP_PROCESSES_NONE;
}

uint32_t sp_processes_first(const struct sp_processes *p)
{
    return root_from(p, 0);
}

uint32_t sp_processes_behind(const struct sp_processes *p, uint32_t i, unsigned *depth)
{
    if (p->items[i].child != SP_PROCESSES_NONE) {
        ++*depth;
        return p->items[i].child;
    }
    while (p->items[i].next == SP_PROCESSES_NONE) {
        if (p->items[i].parent == SP_PROCESSES_NONE)
            return root_from(p, i + 1);
        i = p->items[i].parent;
        --*depth;
    }
    return p->items[i].next;
}
