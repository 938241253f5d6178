#include "policy/model.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pattern.h"

#define DIGEST_BYTES 32u

/* The same names stand there again and again: an empty one, and the last few, are shared. */
static uint32_t add_text(struct sp_model *model, const char *text)
{
    if (text[0] == '\0' && model->texts.size > 0)
        return 0;
    for (unsigned i = 0; i < SP_MODEL_RECENT; i++)
        if (model->recent[i] != 0 &&
            strcmp(model->texts.data + model->recent[i], text) == 0)
            return model->recent[i];
    size_t offset = model->texts.size;
    sp_buffer_append(&model->texts, text, strlen(text) + 1);
    model->failed |= model->texts.failed;
    if (model->failed)
        return 0;
    model->recent[model->recent_next++ % SP_MODEL_RECENT] = (uint32_t)offset;
    return (uint32_t)offset;
}

static struct sp_spot add_spot(struct sp_model *model,
                               const struct sp_place_in_text *where)
{
    return (struct sp_spot){add_text(model, where->source), where->line, where->column};
}

void sp_model_init(struct sp_model *model)
{
    *model = (struct sp_model){0};
    sp_buffer_init(&model->texts, SP_POLICY_BYTES_MAX);
    add_text(model, ""); /* offset 0 is no text */
}

void sp_model_release(struct sp_model *model)
{
    sp_buffer_release(&model->texts);
    free(model->rules);
    *model = (struct sp_model){0};
}

static struct sp_policy_rule *grow(struct sp_model *model)
{
    if (model->count == model->room && !model->failed) {
        uint32_t room = model->room == 0 ? 64 : model->room * 2;
        struct sp_policy_rule *rules =
            room <= SP_RULES_MAX ? realloc(model->rules, room * sizeof *rules) : NULL;
        model->failed = rules == NULL;
        if (rules != NULL) {
            model->rules = rules;
            model->room = room;
        }
    }
    return model->failed ? NULL : &model->rules[model->count++];
}

/* Every offset of a block counts from its start; those of a model from its texts' start. */
static void shift(uint32_t *offset, uint32_t from, uint32_t to)
{
    *offset = *offset - from + to;
}

static void shift_all(struct sp_policy *head, struct sp_policy_rule *rules,
                      uint32_t count, uint32_t from, uint32_t to)
{
    shift(&head->name, from, to);
    shift(&head->source, from, to);
    shift(&head->description, from, to);
    shift(&head->digest, from, to);
    for (int i = 0; i < SP_LIST_COUNT; i++) {
        shift(&head->lists[i].key, from, to);
        shift(&head->lists[i].spot.source, from, to);
    }
    for (int i = 0; i < SP_SETTING_COUNT; i++) {
        shift(&head->settings[i].key, from, to);
        shift(&head->settings[i].spot.source, from, to);
    }
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        shift(&head->limits[i].spot.source, from, to);
    for (uint32_t i = 0; i < count; i++) {
        shift(&rules[i].pattern, from, to);
        shift(&rules[i].written, from, to);
        shift(&rules[i].key, from, to);
        shift(&rules[i].spot.source, from, to);
    }
}

static uint32_t texts_offset(uint32_t rules_count)
{
    return (uint32_t)(sizeof(struct sp_policy) +
                      rules_count * sizeof(struct sp_policy_rule));
}

void sp_model_from(struct sp_model *model, const struct sp_policy *policy)
{
    uint32_t texts = texts_offset(policy->rules_count);
    sp_buffer_clear(&model->texts);
    memset(model->recent, 0, sizeof model->recent);
    sp_buffer_append(&model->texts, (const char *)policy + texts, policy->size - texts);
    model->head = *policy;
    model->count = 0;
    for (uint32_t i = 0; i < policy->rules_count; i++) {
        struct sp_policy_rule *rule = grow(model);
        if (rule != NULL)
            *rule = sp_policy_rules(policy)[i];
    }
    shift_all(&model->head, model->rules, model->count, texts, 0);
    model->failed |= model->texts.failed;
}

void sp_model_name(struct sp_model *model, const char *name, const char *source,
                   const char *description)
{
    model->head.name = add_text(model, name);
    model->head.source = add_text(model, source);
    if (description != NULL)
        model->head.description = add_text(model, description);
}

void sp_model_give(struct sp_model *model, enum sp_list list, enum sp_action action,
                   const char *key, const struct sp_place_in_text *where)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->count; i++)
        if (model->rules[i].list != list || model->rules[i].action != action)
            model->rules[kept++] = model->rules[i];
    model->count = kept;
    if (action == SP_ALLOW)
        model->head.lists[list] =
            (struct sp_policy_list){.allow_given = 1,
                                    .key = add_text(model, key),
                                    .spot = add_spot(model, where)};
}

static uint32_t fixed_size(unsigned shape, const char *pattern)
{
    return (uint32_t)(shape == SP_SHAPE_GLOB ? strcspn(pattern, "*?[")
                                             : strlen(pattern));
}

int sp_model_add(struct sp_model *model, enum sp_list list, enum sp_action action,
                 const char *key, const char *pattern,
                 const struct sp_place_in_text *where, bool first,
                 struct sp_error *reterr)
{
    struct sp_policy_rule rule = {
        .list = (uint8_t)list, .action = (uint8_t)action, .first = first};
    char text[SP_PATTERN_MAX];
    int code = sp_pattern_parse(list, pattern, &rule, text, sizeof text, reterr);
    if (code != 0)
        return code;
    rule.written = add_text(model, pattern);
    rule.fixed = fixed_size(rule.shape, text);
    rule.pattern = strcmp(text, pattern) == 0 ? rule.written : add_text(model, text);
    rule.key = add_text(model, key);
    rule.spot = add_spot(model, where);
    struct sp_policy_rule *place = grow(model);
    if (place != NULL)
        *place = rule;
    return 0;
}

void sp_model_put(struct sp_model *model, const struct sp_policy *from,
                  const struct sp_policy_rule *rule, enum sp_shape shape,
                  const char *pattern)
{
    struct sp_policy_rule copy = *rule;
    copy.shape = (uint8_t)shape;
    copy.pattern = add_text(model, pattern);
    copy.fixed = fixed_size(shape, pattern);
    copy.written = add_text(model, sp_policy_text(from, rule->written));
    copy.key = add_text(model, sp_policy_text(from, rule->key));
    copy.spot.source = add_text(model, sp_policy_text(from, rule->spot.source));
    struct sp_policy_rule *place = grow(model);
    if (place != NULL)
        *place = copy;
}

void sp_model_skeleton(struct sp_model *model, const struct sp_policy *policy)
{
    struct sp_policy *head = &model->head;
    *head = *policy;
    head->bound = 1;
    head->name = add_text(model, sp_policy_text(policy, policy->name));
    head->source = add_text(model, sp_policy_text(policy, policy->source));
    head->description = 0;
    head->digest = add_text(model, sp_policy_text(policy, policy->digest));
    for (int i = 0; i < SP_LIST_COUNT; i++) {
        head->lists[i].key =
            add_text(model, sp_policy_text(policy, head->lists[i].key));
        head->lists[i].spot.source =
            add_text(model, sp_policy_text(policy, head->lists[i].spot.source));
    }
    for (int i = 0; i < SP_SETTING_COUNT; i++) {
        head->settings[i].key =
            add_text(model, sp_policy_text(policy, head->settings[i].key));
        head->settings[i].spot.source =
            add_text(model, sp_policy_text(policy, head->settings[i].spot.source));
    }
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        head->limits[i].spot.source = 0;
}

void sp_model_set(struct sp_model *model, enum sp_setting setting, unsigned value,
                  const char *key, const struct sp_place_in_text *where)
{
    model->head.settings[setting] = (struct sp_policy_setting){
        .value = value, .key = add_text(model, key), .spot = add_spot(model, where)};
}

void sp_model_limit(struct sp_model *model, enum sp_limit limit, uint64_t value,
                    const struct sp_place_in_text *where)
{
    model->head.limits[limit] =
        (struct sp_policy_limit){.value = value, .spot = add_spot(model, where)};
}

struct said {
    unsigned char kind[3];
    const char *text;
};

/* What one rule says, wherever it stands: 0 when two say the same. */
static int compare_said(const void *a, const void *b)
{
    const struct said *x = a;
    const struct said *y = b;
    int order = memcmp(x->kind, y->kind, sizeof x->kind);
    return order != 0 ? order : strcmp(x->text, y->text);
}

static void digest_rules(crypto_generichash_state *state, struct sp_model *model)
{
    struct said *said = malloc((model->count + 1) * sizeof *said);
    model->failed |= said == NULL;
    for (uint32_t i = 0; said != NULL && i < model->count; i++) {
        const struct sp_policy_rule *rule = &model->rules[i];
        said[i] = (struct said){{rule->first != 0, rule->list, rule->action},
                                model->texts.data + rule->written};
    }
    if (said != NULL)
        qsort(said, model->count, sizeof *said, compare_said);
    for (uint32_t i = 0; said != NULL && i < model->count; i++) {
        if (i > 0 && compare_said(&said[i - 1], &said[i]) == 0)
            continue;
        crypto_generichash_update(state, said[i].kind, sizeof said[i].kind);
        crypto_generichash_update(state, (const void *)said[i].text,
                                  strlen(said[i].text) + 1);
    }
    free(said);
}

void sp_model_digest(struct sp_model *model, char to[static SP_DIGEST_TEXT])
{
    crypto_generichash_state state;
    unsigned char sum[DIGEST_BYTES];
    const struct sp_policy *head = &model->head;
    crypto_generichash_init(&state, NULL, 0, sizeof sum);
    digest_rules(&state, model);
    for (int i = 0; i < SP_LIST_COUNT; i++)
        crypto_generichash_update(&state, (const void *)&head->lists[i].allow_given,
                                  sizeof head->lists[i].allow_given);
    for (int i = 0; i < SP_SETTING_COUNT; i++)
        crypto_generichash_update(&state, (const void *)&head->settings[i].value,
                                  sizeof head->settings[i].value);
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        crypto_generichash_update(&state, (const void *)&head->limits[i].value,
                                  sizeof head->limits[i].value);
    crypto_generichash_final(&state, sum, sizeof sum);
    sodium_bin2hex(to, SP_DIGEST_TEXT, sum, sizeof sum);
}

/* Whether nothing is ever denied by a rule of it. */
static bool traces_only(const struct sp_model *model)
{
    const struct sp_policy *head = &model->head;
    bool restricts = head->settings[SP_SETTING_FORK].value == SP_DENY ||
                     head->settings[SP_SETTING_NATIVE].value != SP_NATIVE_ALLOW;
    for (int i = 0; i < SP_LIST_COUNT; i++)
        restricts |= head->lists[i].allow_given != 0 && i != SP_LIST_ENV;
    for (uint32_t i = 0; i < model->count; i++)
        restricts |= model->rules[i].action == SP_DENY &&
                     model->rules[i].list != SP_LIST_CLIENTS &&
                     model->rules[i].list != SP_LIST_ENV;
    return !restricts;
}

int sp_model_finish(struct sp_model *model, struct sp_policy **ret_policy,
                    struct sp_error *reterr)
{
    char hex[SP_DIGEST_TEXT];
    if (!model->failed) {
        sp_model_digest(model, hex);
        if (!model->head.bound) { /* bound, it is the same policy still */
            model->head.digest = add_text(model, hex);
            model->head.traces_only = traces_only(model);
        }
    }
    uint32_t texts = texts_offset(model->count);
    size_t size = texts + model->texts.size;
    char *block = model->failed ? NULL : malloc(size);
    if (block == NULL)
        return sp_fail(reterr, SP_E_POLICY,
                       "the policy is too large: at most %u rules and %u KiB of text",
                       SP_RULES_MAX, SP_POLICY_BYTES_MAX >> 10);
    struct sp_policy *head = (void *)block;
    struct sp_policy_rule *rules = (void *)(block + sizeof *head);
    *head = model->head;
    head->size = (uint32_t)size;
    head->rules_count = model->count;
    head->rules_offset = sizeof *head;
    if (model->count > 0)
        memcpy(rules, model->rules, model->count * sizeof *rules);
    memcpy(block + texts, model->texts.data, model->texts.size);
    shift_all(head, rules, model->count, 0, texts);
    *ret_policy = head;
    return 0;
}
