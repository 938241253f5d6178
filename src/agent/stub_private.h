/* What the stub's files share. Everything that libc might not have is weak. */
#ifndef SP_AGENT_STUB_PRIVATE_H
#define SP_AGENT_STUB_PRIVATE_H

#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/stub.h"
#include "ring/names.h"

/* dlsym and its kin moved into libc.so in glibc 2.34 under a new version; the old names go
 * on working everywhere, in older systems' programs too. */
#if defined(__GLIBC__) && defined(__x86_64__)
#define SP_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define SP_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif
#ifdef SP_OLD
SP_OLD(dlopen);
SP_OLD(dlsym);
SP_OLD(dladdr);
#endif
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dladdr

#define SP_EXPORT __attribute__((visibility("default")))

extern struct sp_stub sp_stub;

/* "LD_PRELOAD=..." as we were given it, ours first, the user's own behind; size 0: none. */
#define SP_PRELOAD_BYTES 4096
extern char sp_stub_preload[SP_PRELOAD_BYTES];
extern size_t sp_stub_preload_size;

/* The function that we stand in front of; NULL when nobody has it. Idempotent, so that two
 * threads may look it up at once. */
static inline void *sp_stub_real(void **cache, const char *name)
{
    void *real = __atomic_load_n(cache, __ATOMIC_RELAXED);
    if (!real && dlsym) {
        real = dlsym(RTLD_NEXT, name);
        __atomic_store_n(cache, real, __ATOMIC_RELAXED);
    }
    return real;
}

#define SP_REAL(name)                                                                  \
    static void *real_##name;                                                          \
    __typeof__(name) *real = (__typeof__(name) *)sp_stub_real(&real_##name, #name)

/* stub_names.c: the addresses of a name, where the supervisor grants it. */
typedef int sp_getaddrinfo(const char *, const char *, const struct addrinfo *,
                           struct addrinfo **);
enum sp_name_result sp_names_ask(const char *host, int family, int flags,
                                 struct sp_name_answer *answer);
int sp_names_list(const struct sp_name_answer *answer, sp_getaddrinfo *real,
                  const char *host, const char *service, const struct addrinfo *hints,
                  struct addrinfo **result);
int sp_names_entry(const struct sp_name_answer *answer, const char *host, int family,
                   struct hostent *entry, char *buffer, size_t size,
                   struct hostent **result, int *error);

#endif
