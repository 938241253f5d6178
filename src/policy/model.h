/* A policy that is being put together: from a document, from another policy, from options.
 *
 * Inheritance is by key: what is not given stays as it was; a list that is given replaces the
 * one before; what is added extends it.
 */
#ifndef SP_POLICY_MODEL_H
#define SP_POLICY_MODEL_H

#include "base/buffer.h"
#include "policy/policy.h"

#define SP_RULES_MAX        16384u
#define SP_POLICY_BYTES_MAX (4u << 20)
#define SP_PATTERN_MAX      4096u
#define SP_MODEL_RECENT     8u

struct sp_model {
    struct sp_buffer texts; /* offsets of `head` and `rules` point into it */
    struct sp_policy head;  /* size and offsets of the block are not filled in */
    struct sp_policy_rule *rules;
    uint32_t count;
    uint32_t room;
    uint32_t recent[SP_MODEL_RECENT]; /* texts that may come again soon */
    unsigned recent_next;
    bool failed; /* no memory, or too large: sp_model_finish() says so */
};

/* Where a key or a pattern stands. */
struct sp_place_in_text {
    const char *source;
    unsigned line;
    unsigned column;
};

/* An empty one allows everything. */
void sp_model_init(struct sp_model *model);
void sp_model_release(struct sp_model *model);

/* Starts from a policy as written. */
void sp_model_from(struct sp_model *model, const struct sp_policy *policy);

void sp_model_name(struct sp_model *model, const char *name, const char *source,
                   const char *description);

/* The list was given: what it held is forgotten; an allow list denies what it does not name. */
void sp_model_give(struct sp_model *model, enum sp_list list, enum sp_action action,
                   const char *key, const struct sp_place_in_text *where);

/* One more pattern; `first`: given for this run by name. 0, or SP_E_POLICY with what is wrong with it (message only). */
int sp_model_add(struct sp_model *model, enum sp_list list, enum sp_action action,
                 const char *key, const char *pattern,
                 const struct sp_place_in_text *where, bool first,
                 struct sp_error *reterr) SP_MUST_CHECK;

void sp_model_set(struct sp_model *model, enum sp_setting setting, unsigned value,
                  const char *key, const struct sp_place_in_text *where);
void sp_model_limit(struct sp_model *model, enum sp_limit limit, uint64_t value,
                    const struct sp_place_in_text *where);

/* A rule of another policy, with another pattern to compare. */
void sp_model_put(struct sp_model *model, const struct sp_policy *from,
                  const struct sp_policy_rule *rule, enum sp_shape shape,
                  const char *pattern);

/* Settings, limits and lists of another policy, without its rules and their texts. */
void sp_model_skeleton(struct sp_model *model, const struct sp_policy *policy);

/* The digest of what it decides, as hex: over patterns and settings, not over where or in which
 * order they stand, so that the same policy has the same digest wherever its file lies. */
#define SP_DIGEST_TEXT 65u
void sp_model_digest(struct sp_model *model, char to[static SP_DIGEST_TEXT]);

/* The block; the caller frees it. SP_E_POLICY when there is too much of it. */
int sp_model_finish(struct sp_model *model, struct sp_policy **ret_policy,
                    struct sp_error *reterr) SP_MUST_CHECK;

#endif
