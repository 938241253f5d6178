#include "read/functions.h"

#include <stdlib.h>
#include <string.h>

#include "read/tape.h"

void sp_functions_init(struct sp_functions *f)
{
    *f = (struct sp_functions){0};
}

void sp_functions_release(struct sp_functions *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        free((char *)f->items[i].name.data);
    free(f->items);
    sp_functions_init(f);
}

static bool grow(struct sp_functions *f, uint32_t id)
{
    if (id < f->count)
        return true;
    if (id >= f->capacity) {
        uint32_t capacity = f->capacity < 256 ? 256 : f->capacity * 2;
        if (capacity <= id)
            capacity = id + 1;
        struct sp_function *items = realloc(f->items, capacity * sizeof *items);
        if (items == NULL)
            return false;
        f->items = items;
        f->capacity = capacity;
    }
    memset(f->items + f->count, 0, (id + 1 - f->count) * sizeof *f->items);
    f->count = id + 1;
    return true;
}

static struct sp_text text_of(const struct sp_tape *tape, const char *key)
{
    const struct sp_json_node *node = sp_tape_text(tape, key);
    return node == NULL ? (struct sp_text){"", 0}
                        : (struct sp_text){node->text, node->size};
}

static struct sp_text copy(char **to, struct sp_text text)
{
    memcpy(*to, text.data, text.size);
    struct sp_text copied = {*to, text.size};
    *to += text.size;
    return copied;
}

bool sp_functions_add(struct sp_functions *f, const struct sp_tape *tape)
{
    const int64_t id = sp_tape_int(tape, "id", 0);
    if (id < 1 || id >= SP_READ_FUNCTIONS_MAX || !grow(f, (uint32_t)id))
        return false;
    const struct sp_text name = text_of(tape, "name");
    const struct sp_text module = text_of(tape, "module");
    const struct sp_text file = text_of(tape, "file");
    const size_t size = (size_t)name.size + module.size + file.size;
    if (size > SP_READ_FUNCTION_BYTES_MAX - f->bytes)
        return false;
    char *block = malloc(size + 1);
    if (block == NULL)
        return false;
    struct sp_function *item = &f->items[id];
    free((char *)item->name.data);
    f->bytes += size;
    char *to = block;
    item->name = copy(&to, name);
    item->module = copy(&to, module);
    item->file = copy(&to, file);
    item->line = sp_tape_int(tape, "line", 0);
    item->native = sp_tape_true(tape, "native");
    item->known = true;
    return true;
}

const struct sp_function *sp_functions_get(const struct sp_functions *f, uint32_t id)
{
    return id < f->count && f->items[id].known ? &f->items[id] : NULL;
}
