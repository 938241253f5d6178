/* What a policy says about one act: the verdict, the rule that decides, and those that fit as well
 * but lose.
 */
#ifndef SP_POLICY_QUESTION_H
#define SP_POLICY_QUESTION_H

#include "policy/policy.h"

enum sp_question_kind {
    SP_ASK_READ,
    SP_ASK_WRITE,
    SP_ASK_CONNECT,
    SP_ASK_RESOLVE,
    SP_ASK_RUN,
    SP_ASK_IMPORT,
    SP_ASK_ENV,
    SP_ASK_FORK,
    SP_ASK_LIMIT,
    SP_ASK_COUNT,
};

const char *sp_question_word(enum sp_question_kind kind); /* "read", "connect" ... */
int sp_question_find(const char *word);                   /* -1: unknown */

/* What it is about; texts are borrowed. */
struct sp_question {
    enum sp_question_kind kind;
    const char *target;          /* a canonical path, a name */
    struct sp_endpoint endpoint; /* of CONNECT */
};

/* Of a policy that is bound. Not of LIMIT. */
struct sp_verdict sp_question_judge(const struct sp_policy *policy,
                                    const struct sp_question *question);

/* The list that a question is answered from; SP_LIST_COUNT: none. */
enum sp_list sp_question_list(enum sp_question_kind kind);

enum sp_standing {
    SP_DECIDES,
    SP_LOSES_TO_GRANT,   /* given for this run by name */
    SP_LOSES_BY_ACTION,  /* as specific; deny wins */
    SP_LOSES_BY_FIT,     /* less specific */
    SP_SAYS_THE_SAME,    /* as specific, and no different */
    SP_LOSES_TO_IMPORTS, /* a network client that a rule on imports names */
    SP_LOSES_TO_NETWORK, /* a network client where the network is not closed */
};

/* A rule that fits. */
struct sp_rival {
    const struct sp_policy_rule *rule;
    enum sp_standing standing;
    char fit[200]; /* how: "the folder /etc" */
};

#define SP_RIVALS_MAX 64u

/* All rules that fit, the one that decides first; of several that one pattern was bound to, the
 * most specific. Returns their number. */
size_t sp_question_rivals(const struct sp_policy *policy,
                          const struct sp_question *question,
                          struct sp_rival to[static SP_RIVALS_MAX]);

#endif
