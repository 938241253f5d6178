/* Asking the supervisor for the addresses of a name (SP_CALL_RESOLVE).
 *
 * Any program of the guest that has the stub may ask; both structures lie in its own memory.
 * The supervisor reads the question once and writes the answer.
 */
#ifndef SP_RING_NAMES_H
#define SP_RING_NAMES_H

#include <stdint.h>

#include "ring/ring.h"

#define SP_NAME_BYTES         256u
#define SP_NAME_ADDRESSES_MAX 32u

struct sp_name_question {
    char host[SP_NAME_BYTES]; /* NUL-terminated */
    int32_t family;           /* AF_UNSPEC: any */
    int32_t flags; /* AI_ADDRCONFIG, AI_V4MAPPED, AI_ALL, AI_CANONNAME count */
};

struct sp_name_address {
    uint16_t family;
    uint16_t reserved;
    uint32_t scope; /* INET6 */
    uint8_t bytes[16];
};

struct sp_name_answer {
    int32_t code; /* 0, or an EAI_ number */
    uint32_t count;
    char canonical[SP_NAME_BYTES];
    struct sp_name_address addresses[SP_NAME_ADDRESSES_MAX];
    char message[SP_SENTENCE_BYTES]; /* of a denial */
};

/* What the call returns. */
enum sp_name_result {
    SP_NAME_ANSWERED = 0,
    SP_NAME_DENIED = 1,
    SP_NAME_LOCAL = 2, /* not granted by name: libc may look in local files */
    SP_NAME_NEVER = 3, /* no name is granted in this run: there is no use in asking */
};

/* ---- between the supervisor and its resolver ----------------------------------------------- */

/* A program of its own beside the agents: the services behind names are libraries, which the
 * supervisor, linked statically, could not load. The socket is its standard input. */
#define SP_RESOLVER_NAME "sandpit-resolver"

struct sp_resolver_question {
    uint32_t serial;
    struct sp_name_question names;
};

struct sp_resolver_answer {
    uint32_t serial;             /* of the question */
    struct sp_name_answer names; /* its message is not used */
};

#endif
