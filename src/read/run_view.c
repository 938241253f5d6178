#include "read/run_view.h"

#include <string.h>

#include "read/tape.h"

/* ---- the form our writer gives a run ------------------------------------------------------ */

static bool take(const char **p, const char *text)
{
    const size_t size = strlen(text);
    if (strncmp(*p, text, size) != 0)
        return false;
    *p += size;
    return true;
}

/* A number below 2^32 without leading zeros. */
static bool take_number(const char **p, uint32_t *ret_value)
{
    const char *q = *p;
    uint64_t v = 0;
    while (*q >= '0' && *q <= '9' && q - *p < 10)
        v = v * 10 + (uint64_t)(*q++ - '0');
    if (q == *p || (**p == '0' && q - *p > 1) || v > UINT32_MAX)
        return false;
    *p = q;
    *ret_value = (uint32_t)v;
    return true;
}

static bool scan_ids(struct sp_run_view *v, const char **p)
{
    for (uint32_t i = 0; i < v->count; i++) {
        uint32_t id;
        if (i > 0 && *(*p)++ != ',')
            return false;
        const bool is_return = **p == '-';
        *p += is_return;
        if (!take_number(p, &id) || id == 0 || id > INT32_MAX)
            return false;
        v->ids[i] = is_return ? -(int32_t)id : (int32_t)id;
    }
    return take(p, "]");
}

static bool scan_times(struct sp_run_view *v, const char **p, uint64_t t_ns)
{
    for (uint32_t i = 0; i < v->count; i++) {
        uint32_t dt;
        if ((i > 0 && *(*p)++ != ',') || !take_number(p, &dt))
            return false;
        t_ns += dt;
        v->t_ns[i] = t_ns;
    }
    return take(p, "]");
}

static bool scan_positions(struct sp_run_view *v, const char **p, uint8_t flag)
{
    int64_t before = -1;
    do {
        uint32_t position;
        if (!take_number(p, &position) || position <= before || position >= v->count)
            return false;
        before = position;
        v->flags[position] |= flag;
    } while (take(p, ","));
    return take(p, "]");
}

bool sp_run_view_scan(struct sp_run_view *v, const char *text, size_t size,
                      uint64_t t_ns)
{
    const char *p = text;
    if (!take(&p, ",\"n\":") || !take_number(&p, &v->count) || v->count < 1 ||
        v->count > SP_TRACE_RUN_MAX)
        return false;
    memset(v->flags, 0, v->count);
    if (!take(&p, ",\"f\":[") || !scan_ids(v, &p) || !take(&p, ",\"dt\":[") ||
        !scan_times(v, &p, t_ns))
        return false;
    if (take(&p, ",\"raised\":[") && !scan_positions(v, &p, SP_RUN_RAISED))
        return false;
    if (take(&p, ",\"resumed\":[") && !scan_positions(v, &p, SP_RUN_RESUMED))
        return false;
    return p == text + size - 1 && *p == '}';
}

/* ---- any form ----------------------------------------------------------------------------- */

/* Index of the first of exactly `count` values of array `key`; 0 when it is no such array. */
static uint32_t values(const struct sp_tape *tape, const char *key, uint32_t count)
{
    const uint32_t i = sp_tape_find(tape, 0, key);
    if (i == 0 || tape->nodes[i].type != SP_JSON_ARRAY || tape->nodes[i].size != count)
        return 0;
    /* As many nodes as values: none of them holds others. */
    return tape->nodes[i].next - i - 1 == count ? i + 1 : 0;
}

static bool read_ids(struct sp_run_view *v, const struct sp_tape *tape)
{
    const uint32_t first = values(tape, "f", v->count);
    if (first == 0)
        return false;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct sp_json_node *node = &tape->nodes[first + i];
        if (node->type != SP_JSON_INT || node->integer == 0 ||
            node->integer > INT32_MAX || node->integer < -INT32_MAX)
            return false;
        v->ids[i] = (int32_t)node->integer;
    }
    return true;
}

static bool read_times(struct sp_run_view *v, const struct sp_tape *tape, uint64_t t_ns)
{
    const uint32_t first = values(tape, "dt", v->count);
    if (first == 0)
        return false;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct sp_json_node *node = &tape->nodes[first + i];
        if (node->type != SP_JSON_INT || node->integer < 0 ||
            node->integer > UINT32_MAX)
            return false;
        t_ns += (uint64_t)node->integer;
        v->t_ns[i] = t_ns;
    }
    return true;
}

static bool read_positions(struct sp_run_view *v, const struct sp_tape *tape,
                           const char *key, uint8_t flag)
{
    const uint32_t array = sp_tape_find(tape, 0, key);
    if (array == 0)
        return true;
    const struct sp_json_node *nodes = tape->nodes;
    if (nodes[array].type != SP_JSON_ARRAY)
        return false;
    int64_t before = -1;
    for (uint32_t i = array + 1; i < nodes[array].next; i++) {
        if (nodes[i].type != SP_JSON_INT || nodes[i].integer <= before ||
            nodes[i].integer >= v->count)
            return false;
        before = nodes[i].integer;
        v->flags[before] |= flag;
    }
    return true;
}

bool sp_run_view_read(struct sp_run_view *v, const struct sp_tape *tape, uint64_t t_ns)
{
    const int64_t count = sp_tape_int(tape, "n", 0);
    if (count < 1 || count > SP_TRACE_RUN_MAX)
        return false;
    v->count = (uint32_t)count;
    memset(v->flags, 0, v->count);
    return read_ids(v, tape) && read_times(v, tape, t_ns) &&
           read_positions(v, tape, "raised", SP_RUN_RAISED) &&
           read_positions(v, tape, "resumed", SP_RUN_RESUMED);
}
