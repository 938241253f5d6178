/* From a policy as written to one that is bound to a run: placeholders become places, paths
 * canonical, programs' names the files that they mean here.
 */
#ifndef SP_POLICY_BIND_H
#define SP_POLICY_BIND_H

#include "policy/model.h"

/* The places of a run. Lists end with NULL; a place that the run does not have is NULL. */
struct sp_places {
    const char *work;
    const char *script;
    const char *home;
    const char *tmp;
    const char *agents;              /* sandpit's own, which every guest reads */
    const char *const *python_read;  /* what the interpreter needs to read */
    const char *const *python_write; /* its own folders, installed packages included */
    const char *const *python_programs; /* its executables */
    /* The path with every link followed as far as it exists; false: it cannot be told. */
    bool (*canonical)(void *context, const char *path, char *to, size_t size);
    /* What a bare name means on the guest's PATH, canonical; false: nothing. */
    bool (*program)(void *context, const char *name, char *to, size_t size);
    bool (*folder)(void *context,
                   const char *path); /* whether it is one; NULL: none is */
    void *context;
};

/* The caller frees the result. SP_E_POLICY when it becomes too large. */
int sp_policy_bind(const struct sp_policy *policy, const struct sp_places *places,
                   struct sp_policy **ret_policy, struct sp_error *reterr)
    SP_MUST_CHECK;

/* What an agent needs to know of it: imports, and whether the network is closed. The caller frees
 * the result. */
int sp_policy_for_agent(const struct sp_policy *policy, struct sp_policy **ret_policy,
                        struct sp_error *reterr) SP_MUST_CHECK;

#endif
