#include "policy/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "policy/keys.h"

struct reading {
    struct sp_model *model;
    struct sp_problems *problems;
    const char *source;
    bool extends; /* an empty list then takes away what was inherited */
};

/* A place in the text, or, of a document that had none, the way to the node. */
static void problem(struct reading *r, const struct sp_node *node, bool at_key,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

static void problem(struct reading *r, const struct sp_node *node, bool at_key,
                    const char *format, ...)
{
    char path[128];
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sp_node_path(node, path, sizeof path);
    if (node->line != 0 || path[0] == '\0')
        sp_problem_add(r->problems, r->source, at_key ? node->key_line : node->line,
                       at_key ? node->key_column : node->column, "%s", text);
    else
        sp_problem_add(r->problems, r->source, 0, 0, "%s: %.180s", path, text);
}

static struct sp_place_in_text place(const struct reading *r,
                                     const struct sp_node *node)
{
    return (struct sp_place_in_text){r->source, node->line, node->column};
}

/* ---- names -------------------------------------------------------------------------------------- */

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

/* Another section that has such a key; NULL: none. */
static const char *section_with(const char *key)
{
    bool adds;
    for (const struct sp_policy_key *k = sp_policy_keys; k->name != NULL; k++)
        if (k->section[0] != '\0' && find_key(k->section, key, &adds) != NULL)
            return k->section;
    return NULL;
}

static void unknown_section(struct reading *r, const struct sp_node *node)
{
    const char *names[NAMES_MAX];
    list_names(NULL, names);
    const char *nearest = sp_nearest_name(node->key, names);
    problem(r, node, true, "there is no section [%.60s]%s%s%s", node->key,
            nearest != NULL ? ": did you mean [" : "", nearest != NULL ? nearest : "",
            nearest != NULL ? "]?" : "");
}

static void unknown_key(struct reading *r, const char *section,
                        const struct sp_node *node)
{
    char in[40] = "";
    const char *names[NAMES_MAX];
    const char *other = section_with(node->key);
    if (section[0] != '\0')
        snprintf(in, sizeof in, " in [%s]", section);
    list_names(section, names);
    const char *nearest = sp_nearest_name(node->key, names);
    bool adds;
    char bare[64];
    size_t n = strlen(node->key);
    if (section[0] != '\0' && find_key("", node->key, &adds) != NULL)
        problem(r, node, true,
                "there is no key '%.60s'%s: it stands at the top, before "
                "all sections",
                node->key, in);
    else if (nearest == NULL && other != NULL)
        problem(r, node, true, "there is no key '%.60s'%s: it is one of [%s]",
                node->key, in, other);
    else if (nearest == NULL && n > 4 && n < sizeof bare &&
             strcmp(node->key + n - 4, "_add") == 0) {
        snprintf(bare, sizeof bare, "%.*s", (int)n - 4, node->key);
        nearest = sp_nearest_name(bare, names);
        problem(r, node, true, "there is no key '%.60s'%s%s%s%s", node->key, in,
                nearest != NULL ? ": did you mean '" : "",
                nearest != NULL ? nearest : "", nearest != NULL ? "_add'?" : "");
    } else
        problem(r, node, true, "there is no key '%.60s'%s%s%s%s", node->key, in,
                nearest != NULL ? ": did you mean '" : "",
                nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

/* ---- values ------------------------------------------------------------------------------------- */

static const char *type_name(const struct sp_node *node)
{
    static const char *const names[] = {
        "a table",  "a list",        "a text",         "a number",
        "a number", "true or false", "a date or time", "nothing at all"};
    return names[node->type];
}

static bool is_type(struct reading *r, const char *name, const struct sp_node *node,
                    enum sp_node_type type, const char *wanted)
{
    if (node->type != type) {
        if (type == SP_NODE_LIST && node->type == SP_NODE_TEXT)
            problem(r, node, false, "'%s' takes %s: write [\"%.60s\"]", name, wanted,
                    node->text);
        else
            problem(r, node, false, "'%s' takes %s, not %s", name, wanted,
                    type_name(node));
        return false;
    }
    if (type == SP_NODE_TEXT && strlen(node->text) != node->text_size)
        problem(r, node, false, "'%s' holds a NUL character", name);
    return type != SP_NODE_TEXT || strlen(node->text) == node->text_size;
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
    enum sp_list list = (enum sp_list)key->subject;
    enum sp_action action = (enum sp_action)key->action;
    const struct sp_place_in_text of_key = {r->source, node->key_line,
                                            node->key_column};
    full_name(key, name);
    if (!is_type(r, node->key, node, SP_NODE_LIST, "a list of texts"))
        return;
    if (!adds)
        sp_model_give(r->model, list, action, name, &of_key);
    if (node->first == NULL && (adds || (action == SP_DENY && !r->extends)))
        sp_problem_warn(r->problems, r->source, node->key_line, node->key_column,
                        "'%s' is empty: it does nothing", node->key);
    for (const struct sp_node *item = node->first; item != NULL; item = item->next) {
        struct sp_error error;
        const struct sp_place_in_text where = place(r, item);
        if (is_type(r, node->key, item, SP_NODE_TEXT, "a list of texts") &&
            sp_model_add(r->model, list, action, name, item->text, &where, false,
                         &error) != 0)
            problem(r, item, false, "'%.80s' in %s: %.200s", item->text, name,
                    error.message);
    }
}

static void read_word(struct reading *r, const struct sp_policy_key *key,
                      const struct sp_node *node)
{
    char name[64];
    char known[120] = "";
    const struct sp_place_in_text where = place(r, node);
    full_name(key, name);
    if (!is_type(r, key->name, node, SP_NODE_TEXT, "a text"))
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
    problem(r, node, false, "'%.60s' is no value of '%s': it is one of %s%s%s%s",
            node->text, key->name, known, nearest != NULL ? " (did you mean \"" : "",
            nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "");
}

static void read_bool(struct reading *r, const struct sp_policy_key *key,
                      const struct sp_node *node)
{
    char name[64];
    const struct sp_place_in_text where = place(r, node);
    full_name(key, name);
    if (is_type(r, key->name, node, SP_NODE_BOOL, "true or false"))
        sp_model_set(r->model, (enum sp_setting)key->subject,
                     node->integer != 0 ? SP_ALLOW : SP_DENY, name, &where);
}

/* A text with a unit, a number of seconds, bytes or things; "none" lifts what was inherited. */
static int measure(const struct sp_policy_key *key, const struct sp_node *node,
                   uint64_t *ret_value, struct sp_error *reterr)
{
    static const char *const wanted[] = {[SP_KEY_DURATION] =
                                             "\"30s\", \"500ms\" or seconds",
                                         [SP_KEY_SIZE] = "\"64MiB\" or bytes",
                                         [SP_KEY_COUNT] = "a whole number"};
    enum sp_limit limit = (enum sp_limit)key->subject;
    char number[32];
    if (node->type == SP_NODE_TEXT && strcmp(node->text, "none") == 0) {
        *ret_value = 0;
        return 0;
    }
    if (node->type == SP_NODE_TEXT && key->type != SP_KEY_COUNT)
        return sp_limit_parse(limit, node->text, ret_value, reterr);
    if (node->type == SP_NODE_INTEGER) {
        snprintf(number, sizeof number, "%lld", (long long)node->integer);
        return sp_limit_parse(limit, number, ret_value, reterr);
    }
    if (node->type == SP_NODE_NUMBER && key->type != SP_KEY_COUNT)
        return sp_limit_from_number(limit, node->number, ret_value, reterr);
    return sp_fail(reterr, SP_E_POLICY, "it takes %s, not %s", wanted[key->type],
                   type_name(node));
}

static void read_limit(struct reading *r, const struct sp_policy_key *key,
                       const struct sp_node *node)
{
    struct sp_error error = {0};
    uint64_t value = 0;
    const struct sp_place_in_text where = place(r, node);
    if (node->type == SP_NODE_TEXT &&
        !is_type(r, key->name, node, SP_NODE_TEXT, "a text"))
        return;
    if (measure(key, node, &value, &error) != 0)
        problem(r, node, false, "'%s': %.200s", key->name, error.message);
    else
        sp_model_limit(r->model, (enum sp_limit)key->subject, value, &where);
}

static void read_key(struct reading *r, const struct sp_policy_key *key, bool adds,
                     const struct sp_node *node)
{
    switch (key->type) {
    case SP_KEY_TEXT: /* dealt with before all others */
        (void)is_type(r, key->name, node, SP_NODE_TEXT, "a text");
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

/* ---- tables ------------------------------------------------------------------------------------- */

static void read_table(struct reading *r, const char *section,
                       const struct sp_node *table)
{
    bool top = section[0] == '\0';
    /* What is added comes after what is given, whatever the order in the file. */
    for (int pass = 0; pass < 2; pass++) {
        for (const struct sp_node *n = table->first; n != NULL; n = n->next) {
            bool adds = false;
            const struct sp_policy_key *key = find_key(section, n->key, &adds);
            if (key != NULL && adds == (pass == 1))
                read_key(r, key, adds, n);
            if (key != NULL || pass == 1)
                continue;
            if (top && n->type == SP_NODE_TABLE && is_section(n->key))
                read_table(r, n->key, n);
            else if (top && is_section(n->key))
                problem(r, n, true, "'%s' is a section: write [%s]", n->key, n->key);
            else if (top && n->type == SP_NODE_TABLE)
                unknown_section(r, n);
            else
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
    r->extends = node != NULL;
    if (node == NULL || node->type != SP_NODE_TEXT)
        return;
    unsigned before = r->problems->count;
    if (finder->find(finder->context, node->text, r->source, &base, &error) == 0)
        sp_model_from(r->model, base);
    else if (r->problems->count == before)
        problem(r, node, false, "extends: %.280s", error.message);
    else
        problem(r, node, false, "extends: '%.200s' is no policy: see there",
                node->text);
}

int sp_policy_read(const struct sp_document *document, const char *name,
                   const char *source, const struct sp_policy_finder *finder,
                   struct sp_model *ret_model, struct sp_problems *problems)
{
    struct reading r = {ret_model, problems, source, false};
    const char *description = text_of(document->root, "description");
    unsigned errors = problems->errors;
    sp_model_init(ret_model);
    inherit(&r, document->root, finder);
    unsigned own = sp_problems_kept(problems);
    own -= own > 0 && problems->errors > errors; /* the one about its base */
    sp_model_name(ret_model, name, source, description != NULL ? description : "");
    read_table(&r, "", document->root);
    if (problems->errors == errors)
        return 0;
    sp_problems_sort(problems, own);
    sp_model_release(ret_model);
    return SP_E_POLICY;
}
