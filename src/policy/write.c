#include "policy/write.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "policy/keys.h"

/* What one key has in a policy. */
struct value {
    const struct sp_policy_key *key;
    bool there;
    bool adds;           /* patterns to allow beside no allow list */
    struct sp_spot spot; /* of the key, or of the value that is one word */
};

static struct value value_of(const struct sp_policy *p, const struct sp_policy_key *key)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct value v = {.key = key};
    switch (key->type) {
    case SP_KEY_TEXT:
        v.there = strcmp(key->name, "description") == 0 &&
                  sp_policy_text(p, p->description)[0] != '\0';
        break;
    case SP_KEY_WORD:
    case SP_KEY_BOOL:
        v.spot = p->settings[key->subject].spot;
        v.there = sp_policy_text(p, p->settings[key->subject].key)[0] != '\0';
        break;
    case SP_KEY_PATTERNS:
        for (uint32_t i = 0; i < p->rules_count; i++)
            v.there |= rules[i].list == key->subject &&
                       rules[i].action == key->action && !rules[i].first;
        v.adds = key->action == SP_ALLOW && p->lists[key->subject].allow_given == 0;
        if (key->action == SP_ALLOW && !v.adds) {
            v.spot = p->lists[key->subject].spot;
            v.there = true;
        }
        break;
    default:
        v.spot = p->limits[key->subject].spot;
        v.there = p->limits[key->subject].value != 0;
    }
    return v;
}

void sp_policy_place(const struct sp_policy *policy, const struct sp_spot *spot,
                     char *to, size_t size)
{
    const char *source = spot->source != 0 ? sp_policy_text(policy, spot->source) : "";
    if (spot->line > 0)
        snprintf(to, size, "%s:%u", source, spot->line);
    else
        snprintf(to, size, "%s", source);
}

void sp_policy_limit_text(enum sp_limit limit, uint64_t value, char *to, size_t size)
{
    static const struct {
        enum sp_limit_unit unit;
        uint64_t size;
        const char *name;
    } units[] = {
        {SP_LIMIT_NS, 3600000000000u, "h"}, {SP_LIMIT_NS, 60000000000u, "m"},
        {SP_LIMIT_NS, 1000000000u, "s"},    {SP_LIMIT_NS, 1000000u, "ms"},
        {SP_LIMIT_NS, 1000u, "us"},         {SP_LIMIT_NS, 1u, "ns"},
        {SP_LIMIT_BYTES, 1u << 30, "GiB"},  {SP_LIMIT_BYTES, 1u << 20, "MiB"},
        {SP_LIMIT_BYTES, 1u << 10, "KiB"},  {SP_LIMIT_BYTES, 1u, ""},
        {SP_LIMIT_NUMBER, 1u, ""},
    };
    snprintf(to, size, "none");
    for (size_t i = 0; i < sizeof units / sizeof *units && value != 0; i++)
        if (units[i].unit == sp_limit_unit(limit) && value % units[i].size == 0) {
            snprintf(to, size, "%llu%s", (unsigned long long)(value / units[i].size),
                     units[i].name);
            return;
        }
}

static void add_text(struct sp_buffer *to, const char *text)
{
    sp_json_string(to, text, strlen(text));
}

/* The value of a key that has just one, as both notations write it. */
static void add_single(const struct sp_policy *p, const struct sp_policy_key *key,
                       struct sp_buffer *to)
{
    char text[40];
    switch (key->type) {
    case SP_KEY_TEXT:
        add_text(to, sp_policy_text(p, p->description));
        return;
    case SP_KEY_WORD:
        add_text(to, key->words[p->settings[key->subject].value]);
        return;
    case SP_KEY_BOOL:
        sp_buffer_text(to,
                       p->settings[key->subject].value == SP_ALLOW ? "true" : "false");
        return;
    default:
        sp_policy_limit_text((enum sp_limit)key->subject, p->limits[key->subject].value,
                             text, sizeof text);
        if (key->type == SP_KEY_COUNT)
            sp_buffer_text(to, text);
        else
            add_text(to, text);
    }
}

static bool is_of(const struct sp_policy_rule *rule, const struct sp_policy_key *key)
{
    return rule->list == key->subject && rule->action == key->action && !rule->first;
}

/* ---- TOML --------------------------------------------------------------------------------------- */

static void add_place(const struct sp_policy *p, const struct sp_spot *spot,
                      struct sp_buffer *to)
{
    char place[300];
    sp_policy_place(p, spot, place, sizeof place);
    if (place[0] != '\0') {
        sp_buffer_text(to, "  # ");
        sp_json_chars(to, place, strlen(place), true);
    }
    sp_buffer_text(to, "\n");
}

static void add_patterns(const struct sp_policy *p, const struct value *v,
                         struct sp_buffer *to)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    bool any = false;
    for (uint32_t i = 0; i < p->rules_count; i++) {
        if (!is_of(&rules[i], v->key))
            continue;
        sp_buffer_text(to, any ? "    " : "[\n    ");
        any = true;
        add_text(to, sp_policy_text(p, rules[i].written));
        sp_buffer_text(to, ",");
        add_place(p, &rules[i].spot, to);
    }
    sp_buffer_text(to, any ? "]\n" : "[]");
    if (!any)
        add_place(p, &v->spot, to);
}

void sp_policy_write_toml(const struct sp_policy *policy, struct sp_buffer *to)
{
    const char *section = "";
    for (const struct sp_policy_key *key = sp_policy_keys; key->name != NULL; key++) {
        struct value v = value_of(policy, key);
        if (!v.there)
            continue;
        if (strcmp(section, key->section) != 0)
            sp_buffer_format(to, "%s[%s]\n", to->size > 0 ? "\n" : "", key->section);
        section = key->section;
        sp_buffer_format(to, "%s%s = ", key->name, v.adds ? "_add" : "");
        if (key->type == SP_KEY_PATTERNS) {
            add_patterns(policy, &v, to);
        } else {
            add_single(policy, key, to);
            add_place(policy, &v.spot, to);
        }
    }
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static void add_list(const struct sp_policy *p, const struct sp_policy_key *key,
                     bool places, struct sp_buffer *to)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    sp_buffer_text(to, "[");
    for (uint32_t i = 0; i < p->rules_count; i++) {
        char place[300];
        if (!is_of(&rules[i], key))
            continue;
        sp_policy_place(p, &rules[i].spot, place, sizeof place);
        if (to->data[to->size - 1] != '[')
            sp_buffer_text(to, ",");
        add_text(to, places ? place : sp_policy_text(p, rules[i].written));
    }
    sp_buffer_text(to, "]");
}

void sp_policy_write_json(const struct sp_policy *policy, struct sp_buffer *to)
{
    const char *section = "";
    sp_buffer_text(to, "{");
    for (const struct sp_policy_key *key = sp_policy_keys; key->name != NULL; key++) {
        char name[64];
        struct value v = value_of(policy, key);
        if (!v.there)
            continue;
        if (strcmp(section, key->section) != 0) {
            sp_buffer_text(to, section[0] != '\0' ? "}" : "");
            sp_json_key(to, key->section);
            sp_buffer_text(to, "{");
        }
        section = key->section;
        snprintf(name, sizeof name, "%s%s", key->name, v.adds ? "_add" : "");
        sp_json_key(to, name);
        if (key->type == SP_KEY_PATTERNS)
            add_list(policy, key, false, to);
        else
            add_single(policy, key, to);
    }
    sp_buffer_text(to, section[0] != '\0' ? "}}" : "}");
}

void sp_policy_write_places(const struct sp_policy *policy, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    for (const struct sp_policy_key *key = sp_policy_keys; key->name != NULL; key++) {
        char text[300];
        struct value v = value_of(policy, key);
        if (!v.there || key->type == SP_KEY_TEXT)
            continue;
        snprintf(text, sizeof text, "%s%s%s", key->section,
                 key->section[0] != '\0' ? "." : "", key->name);
        sp_json_key(to, text);
        sp_policy_place(policy, &v.spot, text, sizeof text);
        if (key->type == SP_KEY_PATTERNS)
            add_list(policy, key, true, to);
        else
            add_text(to, text);
    }
    sp_buffer_text(to, "}");
}
