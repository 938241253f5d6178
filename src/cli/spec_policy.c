#include "cli/spec_policy.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define GRANTS_MAX 4096u

char *sp_spec_text(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) == strlen(json_string_value(value))
                   ? strdup(json_string_value(value))
                   : NULL;
    const char *encoded = json_string_value(json_object_get(value, "base64"));
    if (encoded == NULL)
        return NULL;
    size_t size = strlen(encoded);
    size_t length;
    char *text = malloc(size + 1);
    if (text == NULL ||
        sodium_base642bin((unsigned char *)text, size, encoded, size, NULL, &length,
                          NULL, sodium_base64_VARIANT_ORIGINAL) != 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    if (strlen(text) != length) {
        free(text);
        return NULL;
    }
    return text;
}

static int bad(const char *key, struct sp_error *reterr)
{
    return sp_fail(reterr, SP_E_USAGE,
                   "the request's '%s' is missing or of the wrong kind", key);
}

/* ---- an object as a document ----------------------------------------------------------------- */

static void add_value(struct sp_document *document, struct sp_node *parent,
                      const char *key, json_t *value, unsigned depth);

static void add_members(struct sp_document *document, struct sp_node *node,
                        json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t index;
    if (depth >= SP_DOCUMENT_DEPTH_MAX) {
        document->failed = true;
        return;
    }
    json_object_foreach(value, key, member)
        add_value(document, node, key, member, depth + 1);
    json_array_foreach(value, index, member)
        add_value(document, node, NULL, member, depth + 1);
}

/* Where it stands is not known: errors name the key instead. */
static void add_value(struct sp_document *document, struct sp_node *parent,
                      const char *key, json_t *value, unsigned depth)
{
    static const enum sp_node_type types[] = {
        [JSON_OBJECT] = SP_NODE_TABLE, [JSON_ARRAY] = SP_NODE_LIST,
        [JSON_STRING] = SP_NODE_TEXT,  [JSON_INTEGER] = SP_NODE_INTEGER,
        [JSON_REAL] = SP_NODE_NUMBER,  [JSON_TRUE] = SP_NODE_BOOL,
        [JSON_FALSE] = SP_NODE_BOOL,   [JSON_NULL] = SP_NODE_NONE,
    };
    struct sp_node *node = sp_document_add(document, parent, types[json_typeof(value)]);
    if (node == NULL)
        return;
    if (key != NULL)
        node->key = sp_document_text(document, key, strlen(key));
    if (json_is_string(value)) {
        node->text_size = json_string_length(value);
        node->text =
            sp_document_text(document, json_string_value(value), node->text_size);
    }
    node->integer =
        json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    node->number = json_real_value(value);
    add_members(document, node, value, depth);
}

static int take_document(json_t *value, struct sp_spec_policy *keep,
                         struct sp_policy_choice *choice, struct sp_error *reterr)
{
    if (!json_is_object(value))
        return bad("policy.document", reterr);
    add_value(&keep->document, NULL, NULL, value, 0);
    choice->document = &keep->document;
    return keep->document.failed ? sp_fail(reterr, SP_E_POLICY,
                                           "the policy is too large or nested too deep")
                                 : 0;
}

/* {"document": {...}} or {"toml": "..."}; with them `name`, `source` and the digest it must have. */
static int take_object(json_t *value, struct sp_spec_policy *keep,
                       struct sp_policy_choice *choice, struct sp_error *reterr)
{
    json_t *document = json_object_get(value, "document");
    const struct {
        const char *key;
        char **kept;
        const char **chosen;
    } texts[] = {
        {"name", &keep->name, &choice->name},
        {"toml", &keep->text, &choice->text},
        {"source", &keep->source, &choice->source},
        {"digest", &keep->digest, &choice->digest},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *text = json_object_get(value, texts[i].key);
        if (text == NULL || json_is_null(text))
            continue;
        *texts[i].chosen = *texts[i].kept = sp_spec_text(text);
        if (*texts[i].kept == NULL)
            return bad(texts[i].key, reterr);
    }
    if (choice->text != NULL)
        choice->text_size = strlen(choice->text);
    return document != NULL ? take_document(document, keep, choice, reterr) : 0;
}

/* ---- grants ------------------------------------------------------------------------------------ */

static int take_pattern(const char *word, enum sp_action action, const json_t *value,
                        struct sp_spec_policy *keep, struct sp_error *reterr)
{
    int list = sp_grant_list(word);
    if (list < 0)
        return sp_fail(reterr, SP_E_USAGE, "'%.60s' is nothing that can be granted",
                       word);
    if (keep->count == GRANTS_MAX)
        return sp_fail(reterr, SP_E_USAGE, "more than %u grants: make a policy of them",
                       GRANTS_MAX);
    char *pattern = sp_spec_text(value);
    if (pattern == NULL)
        return bad(action == SP_ALLOW ? "allow" : "deny", reterr);
    keep->patterns[keep->count] = pattern;
    keep->grants[keep->count++] =
        (struct sp_grant){(enum sp_list)list, action, pattern};
    return 0;
}

/* {"read": ["/data"], "net": [...]} */
static int take_grants(const json_t *spec, const char *key, enum sp_action action,
                       struct sp_spec_policy *keep, struct sp_error *reterr)
{
    json_t *table = json_object_get(spec, key);
    const char *word;
    json_t *list;
    json_t *item;
    size_t i;
    if (table == NULL || json_is_null(table))
        return 0;
    if (!json_is_object(table))
        return bad(key, reterr);
    json_object_foreach(table, word, list)
    {
        if (!json_is_array(list))
            return bad(key, reterr);
        json_array_foreach(list, i, item)
        {
            int code = take_pattern(word, action, item, keep, reterr);
            if (code != 0)
                return code;
        }
    }
    return 0;
}

int sp_spec_policy_take(const json_t *spec, struct sp_spec_policy *keep,
                        struct sp_policy_choice *ret_choice, struct sp_error *reterr)
{
    json_t *value = json_object_get(spec, "policy");
    int code = 0;
    sp_document_init(&keep->document);
    keep->grants = calloc(GRANTS_MAX, sizeof *keep->grants);
    keep->patterns = calloc(GRANTS_MAX, sizeof *keep->patterns);
    if (keep->grants == NULL || keep->patterns == NULL)
        return sp_fail(reterr, SP_E_HOST, "no memory for the request");
    if (json_is_object(value) && json_object_get(value, "base64") == NULL) {
        code = take_object(value, keep, ret_choice, reterr);
    } else if (value != NULL && !json_is_null(value)) {
        ret_choice->name = keep->name = sp_spec_text(value);
        code = keep->name != NULL ? 0 : bad("policy", reterr);
    }
    if (code == 0)
        code = take_grants(spec, "allow", SP_ALLOW, keep, reterr);
    if (code == 0)
        code = take_grants(spec, "deny", SP_DENY, keep, reterr);
    ret_choice->grants = keep->grants;
    ret_choice->grants_count = keep->count;
    return code;
}
