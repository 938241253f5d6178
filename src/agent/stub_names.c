/* Asking the supervisor for the addresses of a name, and its answers in libc's forms. Where the
 * policy grants names, its resolver looks them up: the program can reach no name server. */
#include "agent/stub_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ring/call.h"

/* No name is granted in this run, or nobody answers. */
static int never;

/* What libc turns into an address by itself. */
static int is_address(const char *host)
{
    return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

enum sp_name_result sp_names_ask(const char *host, int family, int flags,
                                 struct sp_name_answer *answer)
{
    struct sp_name_question question = {.family = family, .flags = flags};
    size_t size = strlen(host);
    if (__atomic_load_n(&never, __ATOMIC_RELAXED) || size >= sizeof question.host ||
        is_address(host))
        return SP_NAME_LOCAL;
    memcpy(question.host, host, size);
    int64_t result;
    do
        result = sp_raw_call(SP_CALL_RESOLVE, (uint64_t)(uintptr_t)&question,
                             (uint64_t)(uintptr_t)answer, 0);
    while (result == -EINTR);
    if (result == SP_NAME_NEVER || result == -ENOSYS) {
        __atomic_store_n(&never, 1, __ATOMIC_RELAXED);
        return SP_NAME_LOCAL;
    }
    if (result < 0) { /* too many at once, or it is dying */
        memset(answer, 0, sizeof *answer);
        answer->code = EAI_AGAIN;
        return SP_NAME_ANSWERED;
    }
    return (enum sp_name_result)result;
}

/* ---- as getaddrinfo gives them --------------------------------------------------------- */

static void write_address(const struct sp_name_address *a, char *text, size_t size)
{
    inet_ntop(a->family, a->bytes, text, (socklen_t)size);
    size_t length = strlen(text);
    if (a->family == AF_INET6 && a->scope != 0)
        snprintf(text + length, size - length, "%%%u", a->scope);
}

/* Each address goes through libc once more, as a number: so services, kinds of sockets and the
 * form of the list are libc's own. */
int sp_names_list(const struct sp_name_answer *answer, sp_getaddrinfo *real,
                  const char *host, const char *service, const struct addrinfo *hints,
                  struct addrinfo **result)
{
    struct addrinfo *first = NULL;
    struct addrinfo **last = &first;
    int asked = hints ? hints->ai_flags : 0;
    for (uint32_t i = 0; i < answer->count && i < SP_NAME_ADDRESSES_MAX; i++) {
        char text[INET6_ADDRSTRLEN + 16];
        struct addrinfo numeric = {.ai_family = answer->addresses[i].family,
                                   .ai_socktype = hints ? hints->ai_socktype : 0,
                                   .ai_protocol = hints ? hints->ai_protocol : 0,
                                   .ai_flags = (asked & (AI_PASSIVE | AI_NUMERICSERV)) |
                                               AI_NUMERICHOST};
        write_address(&answer->addresses[i], text, sizeof text);
        int code = real(text, service, &numeric, last);
        if (code != 0) {
            if (first)
                freeaddrinfo(first);
            return code;
        }
        while (*last)
            last = &(*last)->ai_next;
    }
    if (!first)
        return EAI_NONAME;
    if (asked & AI_CANONNAME)
        first->ai_canonname = strdup(answer->canonical[0] ? answer->canonical : host);
    *result = first;
    return 0;
}

/* ---- as gethostbyname gives them ------------------------------------------------------- */

static int error_of(int code)
{
    return code == EAI_AGAIN  ? TRY_AGAIN
           : code == EAI_FAIL ? NO_RECOVERY
                              : HOST_NOT_FOUND;
}

/* 0; ERANGE: the buffer is too small. */
int sp_names_entry(const struct sp_name_answer *answer, const char *host, int family,
                   struct hostent *entry, char *buffer, size_t size,
                   struct hostent **result, int *error)
{
    size_t length = family == AF_INET6 ? 16 : 4;
    size_t name_size = strlen(host) + 1;
    size_t skew = -(uintptr_t)buffer % sizeof(char *);
    size_t pointers = (SP_NAME_ADDRESSES_MAX + 2) * sizeof(char *);
    *result = NULL;
    *error = error_of(answer->code);
    if (answer->code != 0)
        return 0;
    if (size < skew + pointers + SP_NAME_ADDRESSES_MAX * length + name_size) {
        *error = NETDB_INTERNAL;
        return ERANGE;
    }
    char **list = (char **)(void *)(buffer + skew);
    char *bytes = buffer + skew + pointers;
    char **next = list + 1;
    list[0] = NULL; /* no aliases */
    for (uint32_t i = 0; i < answer->count && i < SP_NAME_ADDRESSES_MAX; i++) {
        if (answer->addresses[i].family != family)
            continue;
        *next++ = memcpy(bytes, answer->addresses[i].bytes, length);
        bytes += length;
    }
    *next = NULL;
    memcpy(bytes, host, name_size);
    *entry = (struct hostent){.h_name = bytes,
                              .h_aliases = list,
                              .h_addrtype = family,
                              .h_length = (int)length,
                              .h_addr_list = list + 1};
    if (list[1])
        *result = entry;
    *error = list[1] ? 0 : NO_DATA;
    return 0;
}
