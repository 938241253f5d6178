/* A question about a policy, and all that there is to its answer. Internal to src/cli. */
#ifndef SP_CLI_POLICY_ANSWER_H
#define SP_CLI_POLICY_ANSWER_H

#include <limits.h>

#include "base/buffer.h"
#include "policy/question.h"
#include "run/policy_here.h"

#define SP_NOTES_MAX 6u

struct sp_policy_answer {
    const struct sp_policy_here *here;
    struct sp_question question;
    const char *asked;
    char target[PATH_MAX];
    const char *hosts[2];
    int limit; /* enum sp_limit; -1: it is about none */
    struct sp_verdict verdict;
    struct sp_explanation explanation;
    struct sp_rival rivals[SP_RIVALS_MAX];
    size_t rivals_count;
    char notes[SP_NOTES_MAX][400];
    unsigned notes_count;
    struct sp_buffer enforced; /* a JSON array */
};

void sp_answer_note(struct sp_policy_answer *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the question of the command line: a word, and what it is about. SP_E_USAGE when it makes no
 * sense. `here` is already filled in. */
int sp_answer_ask(struct sp_policy_answer *a, struct sp_error *reterr) SP_MUST_CHECK;

#endif
