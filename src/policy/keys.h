/* Every key that a policy may have: one table for reading, for the schema and for the reference.
 */
#ifndef SP_POLICY_KEYS_H
#define SP_POLICY_KEYS_H

#include "policy/policy.h"

enum sp_key_type {
    SP_KEY_TEXT,     /* description, extends */
    SP_KEY_WORD,     /* one of `words` */
    SP_KEY_BOOL,     /* fork */
    SP_KEY_PATTERNS, /* a list of patterns */
    SP_KEY_DURATION,
    SP_KEY_SIZE,
    SP_KEY_COUNT,
};

struct sp_policy_key {
    const char *section; /* "": at the top */
    const char *name;
    enum sp_key_type type;
    uint8_t
        subject; /* PATTERNS: enum sp_list; WORD and BOOL: enum sp_setting; a limit's:
                        enum sp_limit */
    uint8_t action;           /* PATTERNS: enum sp_action */
    const char *const *words; /* WORD: by the setting's value, NULL ends */
    const char *help;
};

/* A key without a name ends it. */
extern const struct sp_policy_key sp_policy_keys[];

#endif
