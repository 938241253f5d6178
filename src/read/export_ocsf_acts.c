#include "read/export_ocsf.h"

#include <stddef.h>
#include <string.h>

#include "event/event.h"
#include "read/tape.h"

enum { INFORMATIONAL = 1, LOW, MEDIUM, HIGH };

struct word {
    const char *op;
    int activity_id;
    const char *activity_name;
};

/* What changes a name or an attribute; any other `op` is "Other". */
static const struct word file_words[] = {
    {"rename", 5, "Rename"},
    {"remove", 4, "Delete"},
    {"mkdir", 1, "Create"},
    {"link", 1, "Create"},
    {"symlink", 1, "Create"},
    {"mknod", 1, "Create"},
    {"truncate", 3, "Update"},
    {"chmod", 7, "Set Security"},
    {"chown", 7, "Set Security"},
    {"setxattr", 6, "Set Attributes"},
    {"utime", 6, "Set Attributes"},
    {"removexattr", 6, "Set Attributes"},
    {NULL, 99, "Other"},
};

static const struct word network_words[] = {
    {"connect", 1, "Open"},
    {"send", 6, "Traffic"},
    {"listen", 7, "Listen"},
    {NULL, 99, "Other"},
};

static void choose(const struct word *words, const struct sp_read_event *e,
                   struct sp_ocsf_act *act)
{
    const struct sp_json_node *op = sp_tape_text(e->tape, "op");
    while (words->op != NULL && !sp_node_is(op, words->op))
        words++;
    act->activity_id = words->activity_id;
    act->activity_name = words->activity_name;
}

static bool has_flag(const struct sp_read_event *e, const char *flag)
{
    const struct sp_json_node *flags = sp_tape_text(e->tape, "flags");
    return flags != NULL &&
           memmem(flags->text, flags->size, flag, strlen(flag)) != NULL;
}

/* An open is a request for a handle; one that can only make a file, or that can change it, is told
 * as that. */
static void choose_open(const struct sp_read_event *e, struct sp_ocsf_act *act)
{
    const struct sp_json_node *op = sp_tape_text(e->tape, "op");
    if (has_flag(e, "O_CREAT") && has_flag(e, "O_EXCL")) {
        act->activity_id = 1;
        act->activity_name = "Create";
    } else if (sp_node_is(op, "write") || sp_node_is(op, "read-write")) {
        act->activity_id = 3;
        act->activity_name = "Update";
    } else {
        act->activity_id = 14;
        act->activity_name = "Open";
    }
}

static void choose_finding(const struct sp_read_event *e, struct sp_ocsf_act *act)
{
    const struct sp_json_node *action = sp_tape_text(e->tape, "action");
    act->class_uid = SP_OCSF_FINDING;
    if (sp_tape_find(e->tape, 0, "of") != 0) {
        act->activity_id = 2;
        act->activity_name = "Update";
    } else {
        act->activity_id = 1;
        act->activity_name = "Create";
    }
    act->severity_id = sp_node_is(action, "observe") ? LOW : MEDIUM;
    if (sp_node_is(action, "stop") || e->kind == SP_KIND_TAMPER)
        act->severity_id = HIGH;
}

/* A name that was answered is query and response in one. */
static void choose_dns(const struct sp_read_event *e, struct sp_ocsf_act *act)
{
    const bool answered = sp_tape_find(e->tape, 0, "addresses") != 0;
    act->class_uid = SP_OCSF_DNS;
    act->activity_id = answered ? 6 : 1;
    act->activity_name = answered ? "Traffic" : "Query";
}

bool sp_ocsf_act_of(const struct sp_read_event *e, struct sp_ocsf_act *ret_act)
{
    struct sp_ocsf_act act = {0, 1, "Launch", INFORMATIONAL};
    switch (e->kind) {
    case SP_KIND_START:
    case SP_KIND_FORK:
    case SP_KIND_EXEC:
        act.class_uid = SP_OCSF_PROCESS;
        break;
    case SP_KIND_EXIT:
        act = (struct sp_ocsf_act){SP_OCSF_PROCESS, 2, "Terminate", INFORMATIONAL};
        break;
    case SP_KIND_OPEN:
        act.class_uid = SP_OCSF_FILE;
        choose_open(e, &act);
        break;
    case SP_KIND_FILE:
        act.class_uid = SP_OCSF_FILE;
        choose(file_words, e, &act);
        break;
    case SP_KIND_CONNECT:
    case SP_KIND_BIND:
        act.class_uid = SP_OCSF_NETWORK;
        choose(network_words, e, &act);
        break;
    case SP_KIND_RESOLVE:
        choose_dns(e, &act);
        break;
    case SP_KIND_NATIVE:
        if (sp_tape_text(e->tape, "library") == NULL)
            return false;
        act = (struct sp_ocsf_act){SP_OCSF_MODULE, 1, "Load", INFORMATIONAL};
        break;
    case SP_KIND_VIOLATION:
    case SP_KIND_TAMPER:
    case SP_KIND_LIMIT:
    case SP_KIND_LOST:
        choose_finding(e, &act);
        break;
    default:
        return false;
    }
    *ret_act = act;
    return true;
}

const char *sp_ocsf_class_name(int class_uid)
{
    switch (class_uid) {
    case SP_OCSF_FILE:
        return "File System Activity";
    case SP_OCSF_MODULE:
        return "Module Activity";
    case SP_OCSF_PROCESS:
        return "Process Activity";
    case SP_OCSF_NETWORK:
        return "Network Activity";
    case SP_OCSF_DNS:
        return "DNS Activity";
    default:
        return "Detection Finding";
    }
}

const char *sp_ocsf_category_name(int class_uid)
{
    return class_uid < 2000   ? "System Activity"
           : class_uid < 4000 ? "Findings"
                              : "Network Activity";
}

const char *sp_ocsf_severity_name(int severity_id)
{
    static const char *const names[] = {"Unknown", "Informational", "Low", "Medium",
                                        "High"};
    return names[severity_id];
}

int sp_ocsf_file_type(const struct sp_read_event *e)
{
    const struct sp_json_node *op = sp_tape_text(e->tape, "op");
    if (sp_node_is(op, "mkdir") || sp_node_is(op, "rmdir") ||
        has_flag(e, "O_DIRECTORY"))
        return 2;
    return sp_node_is(op, "symlink") ? 7 : 0;
}
