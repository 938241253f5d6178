/* Writing down what a notified call is about: where in the program it was made, what it asks
 * for, and, when it is denied, why.
 */
#ifndef SP_SUPERVISE_RECORD_H
#define SP_SUPERVISE_RECORD_H

#include "supervise/supervisor.h"

/* Where an act was made. */
struct sp_place {
    bool known;
    bool native; /* no audit event announced it */
    int line;
    char file[512];
    struct sp_buffer stack; /* JSON array, empty: none */
};

/* Takes the agent's claim for this thread and class (SP_ACT_NONE: one that raises no audit event,
 * so that none is missing); without one, walks the thread's frames.
 * `text` (may be NULL) must occur in the claim's path or address for it to count. Also hands
 * out the claim: *ret_claim (may be NULL) is filled when the result is true. */
bool sp_place_find(struct sp_act_call *call, enum sp_act act, const char *text,
                   struct sp_place *ret_place, struct sp_claim *ret_claim);
/* The same, without the walk: for what happens often and is let through. */
bool sp_place_claimed(struct sp_act_call *call, enum sp_act act, const char *text,
                      struct sp_place *ret_place, struct sp_claim *ret_claim);
void sp_place_from_claim(const struct sp_claim *claim, struct sp_place *ret_place);
void sp_place_release(struct sp_place *place);

/* What was announced is this call, of which there is nothing to tell: it is not the next one. */
void sp_place_forget(struct sp_act_call *call, enum sp_act act);

/* Whether it is the import system that makes the call, by the thread's innermost frame (a claim). */
bool sp_place_importer(struct sp_act_call *call);

/* Adds `at`, and `origin` for native acts, to a list of members. */
/* Whether a file is the program's own: not the interpreter's, nor installed in it. */
bool sp_file_reviewed(const struct sp_supervisor *s, const char *file);
void sp_place_members(const struct sp_place *place, struct sp_buffer *members);

/* Drains the process's lane and begins an event of the kernel's about it. */
void sp_record_begin(struct sp_act_call *call, enum sp_kind kind);
/* A whole one; before the program has begun it is kept until it has. */
void sp_record_act(struct sp_act_call *call, enum sp_kind kind,
                   const struct sp_buffer *members);

struct sp_denial {
    const char *category;  /* "network", "import", "process", "integrity" */
    const char *operation; /* "connect" ... */
    const char *target;    /* as a person reads it */
    const char *sameness;  /* what makes repeats the same, NULL: the target */
    struct sp_verdict verdict;
    enum sp_layer layer;
    const struct sp_buffer *members; /* fields of the act itself; may be NULL */
};

/* Writes a denial as a violation, or as what was refused under a policy that only traces.
 * call->sentence is what it says. */
void sp_record_denial(struct sp_act_call *call, const struct sp_denial *given,
                      const struct sp_place *place);

/* Whether the policy ends the run at a violation and has not yet; and that it does, at this one. */
bool sp_stop_wanted(const struct sp_supervisor *s);
void sp_stop(struct sp_supervisor *s, const char *sentence);

/* Writes a refusal that ordinary software takes in its stride as the act's own event, `expected`. */
void sp_record_expected(struct sp_act_call *call, enum sp_kind kind,
                        const struct sp_denial *denial, const struct sp_place *place);

/* code_acts.c: whether the policy denies the import that the agent asks about. */
bool sp_import_judge(struct sp_act_call *call, const struct sp_claim *claim,
                     struct sp_denial *denial, char *target, size_t size);

/* exec_acts.c: whether the policy denies to start the program `asked`, in a process of its own. Fills in
 * what of the denial depends on that; `target` is what it is about. */
bool sp_exec_judge(struct sp_act_call *call, const char *asked,
                   struct sp_denial *denial, char *target, size_t size);

/* The verdict for what no policy allows. */
struct sp_verdict sp_verdict_always(const struct sp_policy *policy);

/* `"key":"text"` and `"key":number`, for lists of members. */
void sp_member_text(struct sp_buffer *members, const char *key, const char *text);
void sp_member_int(struct sp_buffer *members, const char *key, int64_t value);

#endif
