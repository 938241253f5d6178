#include "trace/head.h"

#include <string.h>

#include "event/event.h"
#include "trace/format.h"

/* Moves *p behind `text`, or leaves it at the first byte that differs. */
static bool take(const char **p, const char *text)
{
    for (; *text != '\0'; text++, (*p)++)
        if (**p != *text)
            return false;
    return true;
}

static bool take_uint(const char **p, uint64_t *ret_value)
{
    const char *q = *p;
    uint64_t v = 0;
    if (*q == '0' && q[1] >= '0' && q[1] <= '9')
        return false;
    for (; *q >= '0' && *q <= '9'; q++) {
        const uint64_t digit = (uint64_t)(*q - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (q == *p)
        return false;
    *p = q;
    *ret_value = v;
    return true;
}

static bool take_int(const char **p, int64_t *ret_value)
{
    const bool negative = **p == '-';
    uint64_t v;
    if (negative)
        (*p)++;
    if (!take_uint(p, &v) || v > INT64_MAX)
        return false;
    *ret_value = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

/* A quoted name of lower-case letters, digits, '-' and '_'. */
static bool take_name(const char **p, const char **ret_name, size_t *ret_size)
{
    const char *q = *p;
    while ((*q >= 'a' && *q <= 'z') || (*q >= '0' && *q <= '9') || *q == '-' ||
           *q == '_')
        q++;
    const size_t size = (size_t)(q - *p);
    if (size == 0 || size > SP_HEAD_NAME_MAX || *q != '"')
        return false;
    *ret_name = *p;
    *ret_size = size;
    *p = q + 1;
    return true;
}

static int find_kind(const char *name, size_t size)
{
    static const struct {
        const char *name;
        size_t size;
    } kinds[] = {
#define SP_KIND(name, text, from_ring) {text, sizeof(text) - 1},
#include "event/kinds.def"
#undef SP_KIND
    };
    for (int i = 0; i < SP_KIND_COUNT; i++)
        if (kinds[i].size == size && kinds[i].name[0] == name[0] &&
            memcmp(kinds[i].name, name, size) == 0)
            return i;
    return -1;
}

/* A run says right behind its head how many events it holds. */
static bool take_run(const char *p, struct sp_head *h)
{
    if (h->kind != SP_KIND_RUN) {
        h->count = 1;
        return true;
    }
    return take(&p, ",\"n\":") && take_uint(&p, &h->count) && h->count >= 1 &&
           h->count <= SP_TRACE_RUN_MAX;
}

bool sp_head_read(const char *line, size_t size, struct sp_head *ret_head,
                  size_t *ret_bad)
{
    struct sp_head h;
    const char *p = line;
    const bool good =
        take(&p, "{\"seq\":") && take_uint(&p, &h.seq) && take(&p, ",\"t\":") &&
        take_uint(&p, &h.t_ns) && take(&p, ",\"kind\":\"") &&
        take_name(&p, &h.kind_name, &h.kind_size) && take(&p, ",\"layer\":\"") &&
        take_name(&p, &h.layer_name, &h.layer_size) && take(&p, ",\"pid\":") &&
        take_int(&p, &h.pid) && take(&p, ",\"tid\":") && take_int(&p, &h.tid) &&
        (*p == ',' || *p == '}');
    *ret_bad = (size_t)(p - line) < size ? (size_t)(p - line) : size;
    if (!good)
        return false;
    h.size = (size_t)(p - line);
    h.kind = find_kind(h.kind_name, h.kind_size);
    if (!take_run(p, &h))
        return false;
    *ret_head = h;
    return true;
}
