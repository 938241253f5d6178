#include "policy/keys.h"

static const char *const mode_words[] = {"enforce", "observe", NULL};
static const char *const violation_words[] = {"deny", "stop", NULL};
static const char *const scope_words[] = {"direct", "all", NULL};
static const char *const native_words[] = {"allow", "installed", "stdlib", "deny",
                                           NULL};
static const char *const calls_words[] = {"folded", "off", "first", "all", NULL};
static const char *const files_words[] = {"changes", "all", NULL};

/* clang-format off */
#define PATTERNS(section, name, list, action, help) \
    {section, name, SP_KEY_PATTERNS, list, action, NULL, help}
#define WORD(section, name, setting, words, help) \
    {section, name, SP_KEY_WORD, setting, 0, words, help}
#define LIMIT(name, type, limit, help) \
    {"limits", name, type, limit, 0, NULL, help}

const struct sp_policy_key sp_policy_keys[] = {
    {"", "description", SP_KEY_TEXT, 0, 0, NULL, "what the policy is for, in one sentence"},
    {"", "extends", SP_KEY_TEXT, 0, 0, NULL,
     "the policy that this one starts from: a built-in's name, or another file"},
    WORD("", "mode", SP_SETTING_MODE, mode_words,
         "observe: record what would be denied, deny nothing"),
    WORD("", "on_violation", SP_SETTING_ON_VIOLATION, violation_words,
         "stop: end the run at the first violation"),

    PATTERNS("imports", "allow", SP_LIST_IMPORTS, SP_ALLOW, "modules that may be imported"),
    PATTERNS("imports", "deny", SP_LIST_IMPORTS, SP_DENY, "modules that may not be imported"),
    WORD("imports", "scope", SP_SETTING_SCOPE, scope_words,
         "whose imports: the program's own, or every one"),
    WORD("imports", "native", SP_SETTING_NATIVE, native_words,
         "which native code may be loaded"),

    PATTERNS("fs", "allow_read", SP_LIST_READ, SP_ALLOW, "what may be read"),
    PATTERNS("fs", "deny_read", SP_LIST_READ, SP_DENY, "what may not be read"),
    PATTERNS("fs", "allow_write", SP_LIST_WRITE, SP_ALLOW,
             "what may be made, changed and removed, and read with that"),
    PATTERNS("fs", "deny_write", SP_LIST_WRITE, SP_DENY,
             "what may not be made, changed or removed"),

    PATTERNS("network", "allow", SP_LIST_NETWORK, SP_ALLOW,
             "hosts, addresses and ranges, with or without a port, loopback, unix:PATH"),
    PATTERNS("network", "deny", SP_LIST_NETWORK, SP_DENY, "the same, denied"),
    PATTERNS("network", "clients", SP_LIST_CLIENTS, SP_DENY,
             "modules that are network clients and nothing else: the program may not import "
             "them where no network is granted"),

    PATTERNS("process", "allow", SP_LIST_PROCESS, SP_ALLOW, "programs that may be started"),
    PATTERNS("process", "deny", SP_LIST_PROCESS, SP_DENY, "programs that may not be started"),
    {"process", "fork", SP_KEY_BOOL, SP_SETTING_FORK, 0, NULL, "false: no new processes"},

    PATTERNS("env", "allow", SP_LIST_ENV, SP_ALLOW, "variables that are handed down"),
    PATTERNS("env", "deny", SP_LIST_ENV, SP_DENY, "variables that are not handed down"),

    LIMIT("wall", SP_KEY_DURATION, SP_LIMIT_WALL, "time that the run may take"),
    LIMIT("cpu", SP_KEY_DURATION, SP_LIMIT_CPU, "processor time of all its processes together"),
    LIMIT("memory", SP_KEY_SIZE, SP_LIMIT_MEMORY, "memory in use by all of them together"),
    LIMIT("processes", SP_KEY_COUNT, SP_LIMIT_PROCESSES, "processes at a time, threads included"),
    LIMIT("open_files", SP_KEY_COUNT, SP_LIMIT_OPEN_FILES, "descriptors, in each process"),
    LIMIT("file_size", SP_KEY_SIZE, SP_LIMIT_FILE_SIZE, "size of one file"),
    LIMIT("disk", SP_KEY_SIZE, SP_LIMIT_DISK, "what the run writes to disk, all files together"),
    LIMIT("output", SP_KEY_SIZE, SP_LIMIT_OUTPUT, "what it prints, both streams together"),
    LIMIT("trace", SP_KEY_SIZE, SP_LIMIT_TRACE, "size of the trace; more is counted, not kept"),

    WORD("trace", "calls", SP_SETTING_CALLS, calls_words, "which calls are recorded"),
    WORD("trace", "files", SP_SETTING_FILES, files_words,
         "all: every file that is opened for reading, as the kernel sees it"),
    {NULL, NULL, SP_KEY_TEXT, 0, 0, NULL, NULL},
};
/* clang-format on */
