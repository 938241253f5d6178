#include "policy/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/size.h"
#include "policy/keys.h"

struct reading {
    struct sp_model *model;
    struct sp_problems *problems;
    const char *source;
};

static void problem(struct reading *r, unsigned line, unsigned column,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

static void problem(struct reading *r, unsigned line, unsigned column,
                    const char *format, ...)
{
    va_list arguments;
    if (r->problems->count++ >= SP_PROBLEMS_MAX)
        return;
    struct sp_problem *p = &r->problems->items[r->problems->count - 1];
    p->line = line;
    p->column = column;
    va_start(arguments, format);
    vsnprintf(p->message, sizeof p->message, format, arguments);
    va_end(arguments);
}

#define NAMES_MAX 64u

/* The keys of a section, or the sections (`section` NULL), for the nearest name. */
static void list_names(const char *section, const char *names[static NAMES_MAX])
{
    size_t n = 0;
    for (const struct sp_policy_key *k = sp_policy_keys; k->name != NULL; k++) {
        const char *name = section != NULL ? k->name : k->section;
        bool known = section != NULL ? strcmp(k->section, section) != 0
                                     : name[0] == '\0' ||
                                           (n > 0 && strcmp(names[n - 1], name) == 0);
        if (!known && n + 1 < NAMES_MAX)
            names[n++] = name;
    }
    names[n] = NULL;
}

static void unknown_key(struct reading *r, const char *section,
                        const struct sp_node *node)
{
    const char *names[NAMES_MAX];
    const char *nearest;
    if (section[0] == '\0' && node->type == SP_NODE_TABLE) {
        list_names(NULL, names);
        nearest = sp_nearest_name(node->key, names);
        problem(r, node->key_line, node->key_column,
                "there is no section [%.60s]%s%s%s", node->key,
                nearest != NULL ? ": did you mean [" : "",
                nearest != NULL ? nearest : "", nearest != NULL ? "]?" : "");
        return;
    }
    list_names(section, names);
    nearest = sp_nearest_name(node->key, names);
    problem(r, node->key_line, node->key_column, "there is no key '%.60s'%s%s%s%s%s%s",
            node->key, section[0] != '\0' ? " in [" : "", section,
            section[0] != '\0' ? "]" : "", nearest != NULL ? ": did you mean '" : "",
            nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

static const char *type_name(const struct sp_node *node)
{
    static const char *const names[] = {"a table",       "a list",   "a text",
                                        "a number",      "a number", "true or false",
                                        "a date or time"};
    return names[node->type];
}

static bool is_type(struct reading *r, const struct sp_policy_key *key,
                    const struct sp_node *node, enum sp_node_type type,
                    const char *wanted)
{
    if (node->type == type &&
        (type != SP_NODE_TEXT || strlen(node->text) == node->text_size))
        return true;
    if (node->type == type)
        problem(r, node->line, node->column, "'%s' holds a NUL character", key->name);
    else
        problem(r, node->line, node->column, "'%s' takes %s, not %s", key->name, wanted,
                type_name(node));
    return false;
}

/* "fs.allow_read" */
static void full_name(const struct sp_policy_key *key, char to[64])
{
    snprintf(to, 64, "%s%s%s", key->section, key->section[0] != '\0' ? "." : "",
             key->name);
}

static void read_patterns(struct reading *r, const struct sp_policy_key *key, bool adds,
                          const struct sp_node *node)
{
    char name[64];
    struct sp_place_in_text where = {r->source, node->key_line, node->key_column};
    full_name(key, name);
    if (!is_type(r, key, node, SP_NODE_LIST, "a list of texts"))
        return;
    if (!adds)
        sp_model_give(r->model, (enum sp_list)key->subject, (enum sp_action)key->action,
                      name, &where);
    for (const struct sp_node *item = node->first; item != NULL; item = item->next) {
        struct sp_error error;
        if (!is_type(r, key, item, SP_NODE_TEXT, "a list of texts"))
            continue;
        where.line = item->line;
        where.column = item->column;
        if (sp_model_add(r->model, (enum sp_list)key->subject,
                         (enum sp_action)key->action, name, item->text, &where, false,
                         &error) != 0)
            problem(r, item->line, item->column, "'%.80s' in %s: %.200s", item->text,
                    name, error.message);
    }
}

static void read_word(struct reading *r, const struct sp_policy_key *key,
                      const struct sp_node *node)
{
    char name[64];
    char known[120] = "";
    const struct sp_place_in_text where = {r->source, node->line, node->column};
    full_name(key, name);
    if (!is_type(r, key, node, SP_NODE_TEXT, "a text"))
        return;
    for (unsigned i = 0; key->words[i] != NULL; i++) {
        size_t n = strlen(known);
        if (strcmp(key->words[i], node->text) == 0) {
            sp_model_set(r->model, (enum sp_setting)key->subject, i, name, &where);
            return;
        }
        snprintf(known + n, sizeof known - n, "%s\"%s\"", i > 0 ? ", " : "",
                 key->words[i]);
    }
    const char *nearest = sp_nearest_name(node->text, key->words);
    problem(r, node->line, node->column,
            "'%.60s' is no value of '%s': it is one of %s%s%s%s", node->text, key->name,
            known, nearest != NULL ? " (did you mean \"" : "",
            nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "");
}

static void read_bool(struct reading *r, const struct sp_policy_key *key,
                      const struct sp_node *node)
{
    char name[64];
    const struct sp_place_in_text where = {r->source, node->line, node->column};
    full_name(key, name);
    if (is_type(r, key, node, SP_NODE_BOOL, "true or false"))
        sp_model_set(r->model, (enum sp_setting)key->subject,
                     node->integer != 0 ? SP_ALLOW : SP_DENY, name, &where);
}

/* A text with a unit, or a number: of seconds, bytes, things. */
static int measure(const struct sp_policy_key *key, const struct sp_node *node,
                   uint64_t *ret_value, struct sp_error *reterr)
{
    char text[64];
    if (node->type == SP_NODE_TEXT && key->type != SP_KEY_COUNT)
        snprintf(text, sizeof text, "%s", node->text);
    else if (node->type == SP_NODE_INTEGER)
        snprintf(text, sizeof text, "%lld", (long long)node->integer);
    else if (node->type == SP_NODE_NUMBER && key->type == SP_KEY_DURATION)
        snprintf(text, sizeof text, "%.9f", node->number);
    else
        return sp_fail(reterr, SP_E_POLICY, "it takes %s, not %s",
                       key->type == SP_KEY_DURATION ? "\"30s\", \"500ms\" or seconds"
                       : key->type == SP_KEY_SIZE   ? "\"64MiB\" or bytes"
                                                    : "a whole number",
                       type_name(node));
    if (key->type == SP_KEY_DURATION)
        return sp_duration_parse(text, ret_value, reterr);
    if (key->type == SP_KEY_SIZE)
        return sp_size_parse(text, ret_value, reterr);
    if (node->integer < 1 || node->integer > INT32_MAX)
        return sp_fail(reterr, SP_E_POLICY, "%s is out of range: from 1 to %d", text,
                       INT32_MAX);
    *ret_value = (uint64_t)node->integer;
    return 0;
}

static void read_limit(struct reading *r, const struct sp_policy_key *key,
                       const struct sp_node *node)
{
    struct sp_error error;
    uint64_t value;
    const struct sp_place_in_text where = {r->source, node->line, node->column};
    if (measure(key, node, &value, &error) != 0)
        problem(r, node->line, node->column, "'%s': %.200s", key->name, error.message);
    else
        sp_model_limit(r->model, (enum sp_limit)key->subject, value, &where);
}

static void read_key(struct reading *r, const struct sp_policy_key *key, bool adds,
                     const struct sp_node *node)
{
    switch (key->type) {
    case SP_KEY_TEXT: /* dealt with before all others */
        (void)is_type(r, key, node, SP_NODE_TEXT, "a text");
        return;
    case SP_KEY_PATTERNS:
        read_patterns(r, key, adds, node);
        return;
    case SP_KEY_WORD:
        read_word(r, key, node);
        return;
    case SP_KEY_BOOL:
        read_bool(r, key, node);
        return;
    default:
        read_limit(r, key, node);
    }
}

/* The key, also by its name with "_add" behind it; NULL: there is none. */
static const struct sp_policy_key *find_key(const char *section, const char *name,
                                            bool *ret_adds)
{
    for (const struct sp_policy_key *k = sp_policy_keys; k->name != NULL; k++) {
        size_t n = strlen(k->name);
        if (strcmp(k->section, section) != 0 || strncmp(k->name, name, n) != 0)
            continue;
        *ret_adds = k->type == SP_KEY_PATTERNS && strcmp(name + n, "_add") == 0;
        if (name[n] == '\0' || *ret_adds)
            return k;
    }
    return NULL;
}

static bool is_section(const char *name)
{
    for (const struct sp_policy_key *k = sp_policy_keys; k->name != NULL; k++)
        if (name[0] != '\0' && strcmp(k->section, name) == 0)
            return true;
    return false;
}

static void read_table(struct reading *r, const char *section,
                       const struct sp_node *table)
{
    /* What is added comes after what is given, whatever the order in the file. */
    for (int pass = 0; pass < 2; pass++) {
        for (const struct sp_node *n = table->first; n != NULL; n = n->next) {
            bool adds = false;
            const struct sp_policy_key *key = find_key(section, n->key, &adds);
            if (key != NULL && adds == (pass == 1))
                read_key(r, key, adds, n);
            else if (key == NULL && pass == 0 && section[0] == '\0' &&
                     n->type == SP_NODE_TABLE && is_section(n->key))
                read_table(r, n->key, n);
            else if (key == NULL && pass == 0 && section[0] == '\0' &&
                     is_section(n->key))
                problem(r, n->key_line, n->key_column, "'%s' is a section: write [%s]",
                        n->key, n->key);
            else if (key == NULL && pass == 0)
                unknown_key(r, section, n);
        }
    }
}

static const char *text_of(const struct sp_node *root, const char *key)
{
    const struct sp_node *node = sp_node_find(root, key);
    return node != NULL && node->type == SP_NODE_TEXT ? node->text : NULL;
}

static void inherit(struct reading *r, const struct sp_node *root,
                    const struct sp_policy_finder *finder)
{
    const struct sp_node *node = sp_node_find(root, "extends");
    const struct sp_policy *base;
    struct sp_error error;
    if (node == NULL || node->type != SP_NODE_TEXT)
        return;
    if (finder->find(finder->context, node->text, r->source, &base, &error) != 0) {
        problem(r, node->line, node->column, "extends: %.280s", error.message);
        return;
    }
    sp_model_from(r->model, base);
}

static int by_line(const void *a, const void *b)
{
    const struct sp_problem *x = a;
    const struct sp_problem *y = b;
    return x->line != y->line       ? (x->line < y->line ? -1 : 1)
           : x->column != y->column ? (x->column < y->column ? -1 : 1)
                                    : 0;
}

int sp_policy_read(const struct sp_document *document, const char *name,
                   const char *source, const struct sp_policy_finder *finder,
                   struct sp_model *ret_model, struct sp_problems *ret_problems)
{
    struct reading r = {ret_model, ret_problems, source};
    const char *description = text_of(document->root, "description");
    ret_problems->count = 0;
    sp_model_init(ret_model);
    inherit(&r, document->root, finder);
    sp_model_name(ret_model, name, source, description);
    read_table(&r, "", document->root);
    if (ret_problems->count == 0)
        return 0;
    unsigned kept =
        ret_problems->count < SP_PROBLEMS_MAX ? ret_problems->count : SP_PROBLEMS_MAX;
    qsort(ret_problems->items, kept, sizeof *ret_problems->items, by_line);
    sp_model_release(ret_model);
    return SP_E_POLICY;
}
