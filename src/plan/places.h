/* The places of a run, to which its policy is bound: folders of the run, and what the interpreter
 * cannot do without.
 */
#ifndef SP_PLAN_PLACES_H
#define SP_PLAN_PLACES_H

#include <limits.h>

#include "plan/interpreter.h"
#include "policy/bind.h"

#define SP_PLACES_FOLLOWED  4u
#define SP_PLACES_MAX       96u
#define SP_PLACES_TEXT_SIZE (48u * 1024u)

struct sp_place_list {
    const char *items[SP_PLACES_MAX + 1];
    unsigned count;
};

/* Large; the lists point into `text`. */
struct sp_run_places {
    struct sp_places places; /* points at the rest */
    char work[PATH_MAX];
    char script[PATH_MAX];
    char home[PATH_MAX];
    char user_base[PATH_MAX]; /* of the user's own packages ("user site"), "": none */
    struct sp_place_list read;
    struct sp_place_list write;
    struct sp_place_list programs;
    const char *path; /* the guest's PATH; may be NULL */
    /* Folders whose links were followed lately, and what they are. */
    struct {
        char folder[PATH_MAX];
        char real[PATH_MAX];
    } followed[SP_PLACES_FOLLOWED];
    unsigned followed_next;
    char text[SP_PLACES_TEXT_SIZE];
    size_t text_used;
};

/* What the policy, as it was `written`, can ask for. To be called in the folder of the run. `script`:
 * the folder of the program, NULL: none; `tmp`: the run's private folder, NULL: none; `agents`: of the
 * stub and the agents; `path`: the guest's PATH. All must outlive the result, which must not be
 * moved. */
int sp_places_find(const struct sp_policy *written,
                   const struct sp_interpreter *interpreter, const char *script,
                   const char *tmp, const char *agents, const char *path,
                   struct sp_run_places *ret_places, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Whether a policy as written names {tmp} among what may be written. */
bool sp_places_want_tmp(const struct sp_policy *policy);

#endif
