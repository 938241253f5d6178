/* A policy, in one flat block without pointers, so that it is compiled in as it is, copied
 * into the agent's configuration, and judged by the same code on both sides.
 *
 *     text -> model (model.h) -> block as written -> block bound to one run (bind.h)
 *
 * As written, patterns hold placeholders; bound, they are absolute paths, ready to be compared
 * with what the kernel shows. Judging is pure: no I/O, no allocation. Who enforces a verdict is
 * the plan's business.
 */
#ifndef SP_POLICY_POLICY_H
#define SP_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/limit.h"

/* What a pattern is about. Each list has patterns that allow and patterns that deny. */
enum sp_list {
    SP_LIST_IMPORTS, /* [imports] allow, deny */
    SP_LIST_CLIENTS, /* [network] clients: modules, denied where no network is granted */
    SP_LIST_READ,    /* [fs] allow_read, deny_read */
    SP_LIST_WRITE,   /* [fs] allow_write, deny_write */
    SP_LIST_NETWORK, /* [network] allow, deny */
    SP_LIST_PROCESS, /* [process] allow, deny: programs that are started */
    SP_LIST_ENV,     /* [env] allow, deny */
    SP_LIST_COUNT,
};

enum sp_action {
    SP_ALLOW,
    SP_DENY,
};

/* Settings that are one word. The first value of each is the default. */
enum sp_setting {
    SP_SETTING_MODE,         /* enum sp_mode */
    SP_SETTING_ON_VIOLATION, /* enum sp_on_violation */
    SP_SETTING_SCOPE,        /* enum sp_scope: [imports] scope */
    SP_SETTING_NATIVE,       /* enum sp_native: [imports] native */
    SP_SETTING_FORK,         /* enum sp_action: [process] fork = true is SP_ALLOW */
    SP_SETTING_CALLS,        /* enum sp_calls_setting: [trace] calls */
    SP_SETTING_FILES,        /* enum sp_files_setting: [trace] files */
    SP_SETTING_COUNT,
};
enum sp_mode { SP_MODE_ENFORCE, SP_MODE_OBSERVE };
enum sp_on_violation { SP_ON_VIOLATION_DENY, SP_ON_VIOLATION_STOP };
enum sp_scope { SP_SCOPE_DIRECT, SP_SCOPE_ALL };
enum sp_native {
    SP_NATIVE_ALLOW,
    SP_NATIVE_INSTALLED, /* extension modules under {python}; no ctypes, no cffi */
    SP_NATIVE_STDLIB,    /* the standard library's only */
    SP_NATIVE_DENY,
};
enum sp_calls_setting {
    SP_CALLS_SETTING_FOLDED,
    SP_CALLS_SETTING_OFF,
    SP_CALLS_SETTING_FIRST,
    SP_CALLS_SETTING_ALL,
};
enum sp_files_setting { SP_FILES_CHANGES, SP_FILES_ALL };

/* Where something stands. */
struct sp_spot {
    uint32_t
        source; /* offset of the file's name, as "no-network.toml" or "command line" */
    uint32_t line; /* 0: none */
    uint32_t column;
};

/* How a pattern matches; worked out when the block is made. */
enum sp_shape {
    SP_SHAPE_ANY, /* "*" */
    SP_SHAPE_PLAIN, /* a name, path or host: itself and, of names and paths, what is below */
    SP_SHAPE_GLOB,    /* has * or ? or [ */
    SP_SHAPE_ADDRESS, /* network: an address, or with `bits` a range of them */
    SP_SHAPE_LOOPBACK,
    SP_SHAPE_UNIX,  /* network: "unix:PATH", "unix:@NAME" */
    SP_SHAPE_NEVER, /* bound to something that is not there */
};

struct sp_policy_rule {
    uint8_t list;   /* enum sp_list */
    uint8_t action; /* enum sp_action */
    uint8_t shape;  /* enum sp_shape */
    uint8_t bits; /* ADDRESS: length of the prefix, of 128 (IPv4 is mapped into IPv6) */
    uint16_t port; /* network: 0 is any */
    uint16_t
        first; /* 1: given for this run by name, which comes before everything else */
    uint8_t address[16]; /* ADDRESS */
    uint32_t pattern;    /* offset: what is compared */
    uint32_t fixed;   /* its length, of a glob that of what stands before a wildcard */
    uint32_t written; /* offset: as it stands in its file */
    uint32_t key;     /* offset: the key it stands under, as "fs.deny_read" */
    struct sp_spot spot;
};

/* An allow list that was given makes everything denied that no rule matches. */
struct sp_policy_list {
    uint32_t allow_given; /* 1: yes */
    uint32_t key;         /* offset: of the allow list, as "fs.allow_read" */
    struct sp_spot spot;
};

struct sp_policy_setting {
    uint32_t value;
    uint32_t key; /* offset, as "process.fork" */
    struct sp_spot spot;
};

struct sp_policy_limit {
    uint64_t value; /* 0: none */
    struct sp_spot spot;
};

struct sp_policy {
    uint32_t size; /* of the whole block */
    uint32_t rules_count;
    uint32_t rules_offset;
    uint32_t name;        /* offset of the name ("no-network", or a file's path) */
    uint32_t source;      /* offset of the file's name ("no-network.toml") */
    uint32_t description; /* offset */
    uint32_t digest;      /* offset: BLAKE2b-256 of what it is made of, hex */
    uint32_t traces_only; /* 1: nothing is ever denied by a rule; a refusal under it is
                             `expected`, never a violation */
    uint32_t bound;       /* 1: to a run */
    uint32_t reserved;
    struct sp_policy_list lists[SP_LIST_COUNT];
    struct sp_policy_setting settings[SP_SETTING_COUNT];
    struct sp_policy_limit limits[SP_LIMIT_COUNT];
};

static inline const char *sp_policy_text(const struct sp_policy *p, uint32_t offset)
{
    return (const char *)p + offset;
}
static inline const struct sp_policy_rule *sp_policy_rules(const struct sp_policy *p)
{
    return (const void *)((const char *)p + p->rules_offset);
}
static inline unsigned sp_policy_setting(const struct sp_policy *p,
                                         enum sp_setting setting)
{
    return p->settings[setting].value;
}
static inline uint64_t sp_policy_limit(const struct sp_policy *p, enum sp_limit limit)
{
    return p->limits[limit].value;
}
static inline bool sp_policy_observes(const struct sp_policy *p)
{
    return sp_policy_setting(p, SP_SETTING_MODE) == SP_MODE_OBSERVE;
}

const char *sp_list_name(enum sp_list list); /* "read", "network" ... */

/* What was decided, and by which rule. */
struct sp_verdict {
    enum sp_action action;
    bool by_rule; /* a rule or an allow list of the policy; false: what holds always */
    char rule[200]; /* as `network.clients "requests"`, or `fs.allow_read` when nothing
                           of that list matched; "": none */
    const char *source; /* of the rule; points into the policy */
    unsigned line;      /* 0: none */
    bool expected;      /* refused, but no violation */
    uint8_t list;       /* enum sp_list; SP_LIST_COUNT: about no list */
};

/* Checks that every offset of a block from elsewhere lies inside it and every text ends. */
bool sp_policy_sound(const struct sp_policy *p, size_t size);

/* ---- judging; all but imports and names of variables need a bound policy ------------------- */

/* An import of `module` (dotted) by reviewed code (`direct`) or by a library. */
struct sp_verdict sp_policy_import(const struct sp_policy *p, const char *module,
                                   bool direct);

/* Native code that is loaded, by the file that it comes from. */
enum sp_code_file {
    SP_CODE_LIBC,      /* what libc loads by itself */
    SP_CODE_SYSTEM,    /* libraries of the system, and the interpreter's own */
    SP_CODE_STDLIB,    /* extension modules of the standard library */
    SP_CODE_INSTALLED, /* ... of installed packages, and what these bring along */
    SP_CODE_CALLS_ANY, /* ctypes, cffi: with these a program can call all there is */
    SP_CODE_MEMORY,    /* no file: made at run time */
    SP_CODE_OTHER,
};
/* `path` is absolute; `roots` say how paths under {python} begin, each NUL-terminated, an empty one
 * ends. */
enum sp_code_file sp_code_file_of(const char *path, const char *roots);
/* `started`: the interpreter itself is up. */
struct sp_verdict sp_policy_native(const struct sp_policy *p, enum sp_code_file what,
                                   bool started);
/* Whether the module is ctypes, cffi or a part of them. */
bool sp_native_calls_any(const char *module);

/* Reading, or changing in any way, the object at a canonical absolute path: SP_LIST_READ or
 * SP_LIST_WRITE. Who may write somewhere may read there, unless a rule on reading says no. */
struct sp_verdict sp_policy_path(const struct sp_policy *p, enum sp_list list,
                                 const char *path);

#define SP_SHARED_MEMORY_FOLDER "/dev/shm"
/* The same for an object of shared memory that the run made, right in that folder: what every policy
 * lets programs have, unless a rule names the folder or what is in it. */
struct sp_verdict sp_policy_memory(const struct sp_policy *p, enum sp_list list,
                                   const char *path);

/* On a program that may be read, where the kernel, which reads it to start it, cannot be let. */
struct sp_verdict sp_policy_unread_program(const struct sp_policy *p);

/* What holds for a folder and everything that is or may come to be below it. */
enum sp_cover {
    SP_COVER_ALLOWED,
    SP_COVER_DENIED,
    SP_COVER_MIXED,
};
enum sp_cover sp_policy_cover(const struct sp_policy *p, enum sp_list list,
                              const char *folder);

/* A folder that is moved takes what is in it to other paths. The verdict of the first rule that
 * denies something in it which would not be denied at the new one, or of what denies it where a rule
 * may allow it there by its name. */
struct sp_verdict sp_policy_move(const struct sp_policy *p, const char *from,
                                 const char *to);

/* Whether a rule or allow list of that kind can deny anything at all. */
bool sp_policy_restricts(const struct sp_policy *p, enum sp_list list);

/* One end of a connection: INET and INET6 by address, or a Unix socket by name. */
struct sp_endpoint {
    uint8_t address[16];   /* IPv4 mapped into IPv6 */
    uint16_t port;         /* 0: none */
    const char *unix_name; /* not NULL: a Unix socket's canonical path, or "@name" */
    const char *const
        *hosts; /* names that were looked up and led here, NULL ends; may be NULL */
};
struct sp_verdict sp_policy_endpoint(const struct sp_policy *p,
                                     const struct sp_endpoint *endpoint);
/* A name that is to be looked up: allowed where some port of it is. */
struct sp_verdict sp_policy_host(const struct sp_policy *p, const char *host);

/* Whether a rule is about that name itself, and not about everything. */
bool sp_policy_names_host(const struct sp_policy *p, const char *host);

/* The network as a whole. */
enum sp_reach {
    SP_REACH_OPEN,   /* nothing is denied */
    SP_REACH_JUDGED, /* some of it is */
    SP_REACH_CLOSED, /* no socket reaches anything but the guest itself */
};
enum sp_reach sp_policy_reach(const struct sp_policy *p);
/* The rule by which a closed network is closed. */
struct sp_verdict sp_policy_network(const struct sp_policy *p);

/* Whether names play a part in it, and whether any INET address is granted. */
bool sp_policy_has_hosts(const struct sp_policy *p);
bool sp_policy_grants_inet(const struct sp_policy *p);

/* A program that is to be started: canonical path of the object. */
struct sp_verdict sp_policy_program(const struct sp_policy *p, const char *path);
/* A new process. */
struct sp_verdict sp_policy_fork(const struct sp_policy *p);

/* A variable that the guest may inherit. */
struct sp_verdict sp_policy_variable(const struct sp_policy *p, const char *name);
/* Whether a rule allows it by its whole name. */
bool sp_policy_names_variable(const struct sp_policy *p, const char *name);
/* A name that no glob of an allow list opens: what may be a secret, or changes how programs are
 * loaded. */
bool sp_variable_guarded(const char *name);

/* The same without its rules: it denies nothing but what holds always. The caller frees it. */
int sp_policy_opened(const struct sp_policy *p, struct sp_policy **ret_policy,
                     struct sp_error *reterr) SP_MUST_CHECK;

/* ---- by name ---------------------------------------------------------------------------------- */

/* Built-in policies. find: NULL if unknown. */
const struct sp_policy *sp_policy_builtin(const char *name);
const struct sp_policy *sp_policy_builtin_at(size_t index); /* NULL past the end */

/* The sentence for a denial and what would allow it; both cut to their sizes. `operation` is
 * "import", "connect" ...; `target` the module or address, as it was tried. */
struct sp_explanation {
    char message[1024];
    char hint[256];
};
void sp_policy_explain(const struct sp_policy *p, const struct sp_verdict *v,
                       const char *operation, const char *target,
                       struct sp_explanation *ret_explanation);

#endif
