#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "agent/audit.h"
#include "agent/channel.h"
#include "agent/lane.h"
#include "agent/layout.h"
#include "agent/native.h"
#include "agent/said.h"
#include "agent/stub.h"
#include "agent/turn.h"

struct sp_agent sp_agent;

/* Used where the supervisor gave none, so that nobody has to ask whether there is one. */
static const struct sp_ring_config no_config = {.size = sizeof no_config};

const char *sp_agent_text(uint32_t offset)
{
    const struct sp_ring_config *config = sp_agent.config;
    if (!config || offset < sizeof *config || offset >= config->size)
        return "";
    return (const char *)config + offset;
}

/* Copies the configuration out of the ring, where the program could change it later by
 * accident. Its last bytes are made zeros, so that every text and list in it ends. */
static void take_config(void)
{
    sp_agent.config = &no_config;
    const struct sp_ring *ring = sp_lane.ring;
    const uint8_t *area = (const uint8_t *)ring + ring->config_offset;
    uint32_t size = ((const struct sp_ring_config *)area)->size;
    if (size < sizeof no_config || size > SP_CONFIG_BYTES || size > ring->bytes ||
        ring->config_offset > ring->bytes - size)
        return;
    struct sp_ring_config *config = calloc(1, size + 8);
    if (!config)
        return;
    memcpy(config, area, size);
    config->size = size + 8;
    sp_agent.config = config;
    sp_agent.calls = config->calls <= SP_CALLS_ALL ? config->calls : SP_CALLS_OFF;
    if (config->policy_size >= sizeof(struct sp_policy) &&
        config->policy_offset % 8 == 0 && config->policy_size <= size &&
        config->policy_offset <= size - config->policy_size) {
        const struct sp_policy *policy =
            (const void *)((const uint8_t *)config + config->policy_offset);
        if (sp_policy_sound(policy, config->policy_size))
            sp_agent.policy = policy;
    }
}

/* The interpreter that runs, which need not be the patch release we were built with. */
static uint32_t running_version(void)
{
#if PY_VERSION_HEX >= 0x030b0000
    return (uint32_t)Py_Version;
#else
    unsigned major = 0, minor = 0, micro = 0;
    sscanf(Py_GetVersion(), "%u.%u.%u", &major, &minor, &micro);
    return major << 24 | minor << 16 | micro << 8 | 0xf0;
#endif
}

__attribute__((visibility("default"))) int sp_agent_start(struct sp_stub *stub)
{
    if (stub->version != SP_STUB_VERSION)
        return -1;
    int64_t fd = sp_channel_open(running_version());
    if (fd < 0 || sp_lane_open((int)fd) < 0)
        return -1;
    take_config();
    sp_turn_start();
    if (sp_audit_install(stub) < 0)
        return -1;
    sp_native_install(stub);
    sp_said_install(stub);
    return 0;
}
