/* A policy as written, in one flat block without pointers, so that it is compiled in as it
 * is, copied into the agent's configuration, and judged by the same code on both sides.
 *
 * Judging is pure: no I/O, no allocation. Who enforces a verdict is the plan's business.
 */
#ifndef SP_POLICY_POLICY_H
#define SP_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sp_section {
    SP_SECTION_IMPORTS,
    SP_SECTION_NETWORK,
};

enum sp_action {
    SP_ALLOW,
    SP_DENY,
};

struct sp_policy_rule {
    uint8_t section;  /* enum sp_section */
    uint8_t action;   /* enum sp_action */
    uint16_t line;    /* in the policy's file */
    uint32_t pattern; /* offset into the texts */
    uint32_t key;     /* offset: the key it stands under, as "network.clients" */
};

struct sp_policy {
    uint32_t size; /* of the whole block */
    uint32_t rules_count;
    uint32_t rules_offset;
    uint32_t name;        /* offset of the name ("no-network") from the block's start */
    uint32_t source;      /* offset of the file's name ("no-network.toml") */
    uint32_t description; /* offset */
    uint32_t digest;      /* offset: BLAKE2b-256 of the text, hex */
    uint32_t network_denied; /* 1: nothing that reaches beyond the guest is granted */
    uint32_t
        expected; /* 1: a refusal under this policy is `expected`, never a violation
                          (trace-only) */
    uint32_t network_line; /* line of the rule that denies the network */
};

static inline const char *sp_policy_text(const struct sp_policy *p, uint32_t offset)
{
    return (const char *)p + offset;
}

/* What was decided, and by which rule. `rule` is a text such as
 * "network.clients 'requests'" (no-network.toml:12 is source and line). */
struct sp_verdict {
    enum sp_action action;
    char rule[160];
    const char *source; /* points into the policy */
    unsigned line;
    bool expected;
};

/* Checks that every offset of a block from elsewhere lies inside it and every text ends. */
bool sp_policy_sound(const struct sp_policy *p, size_t size);

/* An import of `module` (dotted) by reviewed code (`direct`) or by a library. */
struct sp_verdict sp_policy_import(const struct sp_policy *p, const char *module,
                                   bool direct);

/* Any act that would reach beyond the guest by a socket. */
struct sp_verdict sp_policy_network(const struct sp_policy *p);

/* Built-in policies. find: NULL if unknown. */
const struct sp_policy *sp_policy_builtin(const char *name);
const struct sp_policy *sp_policy_builtin_at(size_t index); /* NULL past the end */

/* The policy of that name, or an error that lists the known names. */
int sp_policy_load(const char *name, const struct sp_policy **ret_policy,
                   struct sp_error *reterr) SP_MUST_CHECK;

/* The sentence for a denial and what would allow it; both cut to their sizes. `operation` is
 * "import", "connect" ...; `target` the module or address, as it was tried. */
struct sp_explanation {
    char message[512];
    char hint[256];
};
void sp_policy_explain(const struct sp_policy *p, const struct sp_verdict *v,
                       const char *operation, const char *target,
                       struct sp_explanation *ret_explanation);

#endif
