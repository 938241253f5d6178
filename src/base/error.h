/* Errors as values: one fixed-size struct, caller-owned, no allocation.
 *
 * A function that can fail returns 0 or a negative `enum sp_code`. Its last parameter is
 * `struct sp_error *reterr` (may be NULL), written only on failure. The struct goes through
 * a pipe byte for byte, so that the child of a fork can report with it.
 */
#ifndef SP_BASE_ERROR_H
#define SP_BASE_ERROR_H

#include <errno.h>

enum sp_code {
    SP_OK = 0,
    SP_E_USAGE = -1,     /* the caller asked for something that makes no sense */
    SP_E_POLICY = -2,    /* the policy is unknown or invalid */
    SP_E_HOST = -3,      /* this machine cannot do it (names what is missing) */
    SP_E_NOT_FOUND = -4, /* script or interpreter not found */
    SP_E_TRACE = -5,     /* a trace cannot be written or read */
    SP_E_INTERNAL = -6,  /* our own fault */
};

struct sp_error {
    int code;
    int err; /* errno, 0 when none */
    int line;
    int column;
    char what[24];     /* the missing ability for SP_E_HOST, else a stage, else "" */
    char message[512]; /* one sentence, no newline */
};

/* Fills *reterr (if not NULL) and returns `code`, to be used in a return statement. */
int sp_fail(struct sp_error *reterr, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ": <strerror(errno)>" appended and errno kept. */
int sp_fail_errno(struct sp_error *reterr, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names the ability or stage that failed; returns reterr->code. NULL accepted. */
int sp_error_what(struct sp_error *reterr, const char *what);

#define SP_MUST_CHECK __attribute__((warn_unused_result))

/* An invariant of ours is broken: abort, which ends the guest as well (fails closed). */
#define SP_BUG_ON(cond)                                                                \
    do {                                                                               \
        if (__builtin_expect(!!(cond), 0))                                             \
            sp_bug(__FILE__, __LINE__, #cond);                                         \
    } while (0)
void sp_bug(const char *file, int line, const char *condition)
    __attribute__((noreturn));

#endif
