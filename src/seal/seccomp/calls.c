/* The table of calls, compiled in twice: rules and names. */
#include "seal/seccomp/calls.h"

#include <errno.h>
#include <string.h>

#include "seal/seccomp/filter.h"

/* clang-format off */
#define ALLOW {SP_TREAT_ALLOW, 0}
#define SILENT(e) {SP_TREAT_SILENT, e}
#define RECORD {SP_TREAT_RECORD, 0}
#define ATTRIBUTE {SP_TREAT_ATTRIBUTE, EACCES}
#define TRUNCATE  {SP_TREAT_TRUNCATE, EACCES}
#define DECIDE(e) {SP_TREAT_DECIDE, e}
#define DENY(e) {SP_TREAT_DENY, e}
#define SURFACE(e) {SP_TREAT_SURFACE, e}
#define SIGNAL {SP_TREAT_SIGNAL, EPERM}
#define THREAD_SIGNAL {SP_TREAT_THREAD_SIGNAL, EPERM}
#define CODE          {SP_TREAT_CODE, 0}
#define TASK          {SP_TREAT_TASK, EAGAIN}

const struct sp_call_rule sp_call_rules[] = {
#define CALL(name, x86, arm, open, denied, guard) \
    {x86, arm, open, denied, SP_GUARD_##guard},
#include "seal/seccomp/calls.def"
#undef CALL
};

/* Arrays and not pointers: no relocations at start-up. */
static const char names[][24] = {
#define CALL(name, x86, arm, open, denied, guard) #name,
#include "seal/seccomp/calls.def"
#undef CALL
};
/* clang-format on */

const size_t sp_call_rules_count = sizeof(sp_call_rules) / sizeof(sp_call_rules[0]);

static int native_nr(size_t index)
{
#if defined(__aarch64__)
    return sp_call_rules[index].nr_aarch64;
#else
    return sp_call_rules[index].nr_x86_64;
#endif
}

const char *sp_call_name(size_t index)
{
    return names[index];
}

const char *sp_filter_call_name(int nr)
{
    if (nr < 0)
        return NULL;
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        if (native_nr(i) == nr)
            return names[i];
    }
    return NULL;
}

int sp_filter_call_nr(const char *name)
{
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        if (strcmp(names[i], name) == 0)
            return native_nr(i);
    }
    return -1;
}
