#include "run/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bind.h"
#include "ring/ring.h"

static uint32_t add(struct sp_buffer *b, const void *data, size_t size)
{
    static const char zeros[8];
    sp_buffer_append(b, zeros, (8 - b->size % 8) % 8);
    uint32_t offset = (uint32_t)b->size;
    sp_buffer_append(b, data, size);
    return offset;
}

static uint32_t add_text(struct sp_buffer *b, const char *text)
{
    return add(b, text, strlen(text) + 1);
}

int sp_config_build(const struct sp_plan *plan,
                    const struct sp_interpreter *interpreter, const char *agents,
                    const char *program, bool trace, struct sp_buffer *ret_config,
                    struct sp_error *reterr)
{
    struct sp_buffer *b = ret_config;
    sp_buffer_init(b, SP_CONFIG_BYTES);
    struct sp_ring_config config = {
        .calls = trace ? plan->calls : SP_CALLS_OFF,
        .lookups = sp_policy_reach(plan->policy) != SP_REACH_OPEN,
        .trace = trace,
        .opens = plan->listener &&
                 (plan->reads_judged || plan->hidden != NULL ||
                  sp_policy_setting(plan->policy, SP_SETTING_FILES) == SP_FILES_ALL),
    };
    char stub[PATH_MAX + 32];
    snprintf(stub, sizeof stub, "%s/%s", agents, SP_STUB_NAME);
    sp_buffer_append(b, &config, sizeof config);
    struct sp_policy *projection;
    int code = sp_policy_for_agent(plan->policy, &projection, reterr);
    if (code != 0)
        return code;
    config.policy_size = projection->size;
    config.policy_offset = add(b, projection, projection->size);
    free(projection);
    config.agents_offset = add_text(b, agents);
    config.preload_offset = add_text(b, stub);
    config.python_offset = add(b, interpreter->roots, interpreter->roots_size);
    config.program_offset = add_text(b, program);
    config.size = (uint32_t)b->size;
    if (b->failed)
        return sp_fail(
            reterr, SP_E_POLICY,
            "the policy has too many rules on imports: their text is more than "
            "%u KiB",
            SP_CONFIG_BYTES >> 10);
    memcpy(b->data, &config, sizeof config);
    return 0;
}
