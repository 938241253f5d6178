#include "agent/acts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/denial.h"
#include "agent/native.h"

PyObject *sp_acts_item(PyObject *args, Py_ssize_t index)
{
    return index < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, index) : NULL;
}

/* A path as bytes: static or the object's own, until the next call. */
static const char *path_view(PyObject *path, size_t *ret_size)
{
    if (path && PyBytes_Check(path)) {
        *ret_size = (size_t)PyBytes_GET_SIZE(path);
        return PyBytes_AS_STRING(path);
    }
    return sp_text_view(path, ret_size);
}

void sp_acts_add_path(struct sp_lane_record *r, enum sp_field field, PyObject *path)
{
    size_t size;
    const char *text = path_view(path, &size);
    if (size > 0)
        sp_record_text(r, field, text, size);
}

static int small_int(PyObject *value)
{
    if (!value || !PyLong_Check(value))
        return 0;
    int overflow;
    long result = PyLong_AsLongAndOverflow(value, &overflow);
    return overflow || result > INT32_MAX || result < INT32_MIN ? 0 : (int)result;
}

static int announce(enum sp_act act, struct sp_lane_record *r)
{
    sp_record_stack(r);
    sp_lane_announce(act, r);
    return 0;
}

/* ---- files ------------------------------------------------------------------------------ */

static bool can_write(const char *mode, size_t mode_size, int flags)
{
    for (size_t i = 0; i < mode_size; i++)
        if (strchr("wax+", mode[i]))
            return true;
    return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
}

int sp_acts_open(const char *operation, PyObject *args)
{
    PyObject *path = sp_acts_item(args, 0);
    size_t size, mode_size;
    if (!path || PyLong_Check(path)) /* a descriptor is wrapped: nothing is opened */
        return 0;
    struct sp_lane_record *r = sp_record_act(SP_KIND_OPEN, operation);
    const char *text = path_view(path, &size);
    sp_record_text(r, SP_FIELD_PATH, text, size);
    sp_native_announced(text, size);
    const char *mode = sp_text_view(sp_acts_item(args, 1), &mode_size);
    int flags = small_int(sp_acts_item(args, 2));
    bool writes = can_write(mode, mode_size, flags);
    if (mode_size == 0) {
        mode = (flags & O_ACCMODE) == O_RDWR ? "r+" : writes ? "w" : "r";
        mode_size = strlen(mode);
    }
    sp_record_text(r, SP_FIELD_MODE, mode, mode_size);
    if (writes)
        return announce(SP_ACT_OPEN, r);
    if (sp_agent.config->opens)
        sp_lane_announce(SP_ACT_OPEN,
                         r); /* where it is denied, the stack is looked up */
    else
        sp_lane_event(r);
    return 0;
}

/* A folder is read: of interest where that can be denied. */
int sp_acts_folder(const char *operation, PyObject *args)
{
    PyObject *path = sp_acts_item(args, 0);
    size_t size;
    if (!sp_agent.config->opens || !path || path == Py_None || PyLong_Check(path))
        return 0;
    (void)path_view(path, &size);
    if (size == 0) /* which libc refuses by itself */
        return 0;
    struct sp_lane_record *r = sp_record_act(SP_KIND_OPEN, operation);
    sp_acts_add_path(r, SP_FIELD_PATH, path);
    sp_lane_announce(SP_ACT_OPEN, r);
    return 0;
}

int sp_acts_database(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_OPEN, operation);
    sp_acts_add_path(r, SP_FIELD_PATH, sp_acts_item(args, 0));
    return announce(SP_ACT_OPEN, r);
}

int sp_acts_path(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_FILE, operation);
    sp_acts_add_path(r, SP_FIELD_PATH, sp_acts_item(args, 0));
    return announce(SP_ACT_FILE, r);
}

/* A descriptor's is no change of a name: nothing comes to the kernel that is told of. */
int sp_acts_truncate(const char *operation, PyObject *args)
{
    PyObject *path = sp_acts_item(args, 0);
    return path && PyLong_Check(path) ? 0 : sp_acts_path(operation, args);
}

/* A descriptor that cannot be one, libc refuses by itself. */
int sp_acts_times(const char *operation, PyObject *args)
{
    PyObject *path = sp_acts_item(args, 0);
    bool none = path && PyLong_Check(path) && small_int(path) < 0;
    return none ? 0 : sp_acts_path(operation, args);
}

int sp_acts_paths(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_FILE, operation);
    sp_acts_add_path(r, SP_FIELD_PATH, sp_acts_item(args, 0));
    sp_acts_add_path(r, SP_FIELD_TARGET, sp_acts_item(args, 1));
    return announce(SP_ACT_FILE, r);
}

/* ---- processes ---------------------------------------------------------------------------- */

int sp_acts_program(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_EXEC, operation);
    sp_acts_add_path(r, SP_FIELD_PATH, sp_acts_item(args, 0));
    return announce(SP_ACT_PROCESS, r);
}

/* libc reports a shell that cannot be started by a number, which os.system() gives back like an exit
 * code of the command's: the program is told before. */
int sp_acts_shell(const char *operation, PyObject *args)
{
    const struct sp_policy *policy = sp_agent.policy;
    bool judged = policy && (sp_policy_fork(policy).action == SP_DENY ||
                             sp_policy_restricts(policy, SP_LIST_PROCESS));
    if (judged) {
        static char answer[SP_ANSWER_BYTES];
        struct sp_lane_record *r = sp_record_act(SP_KIND_EXEC, operation);
        sp_record_string(r, SP_FIELD_PATH, "/bin/sh");
        sp_record_stack(r);
        if (sp_lane_ask(r, answer))
            return sp_denial_permission(
                sp_policy_fork(policy).action == SP_DENY ? EPERM : EACCES, answer);
    }
    return sp_acts_program(operation, args);
}

int sp_acts_process(const char *operation, PyObject *args)
{
    (void)args;
    struct sp_lane_record *r = sp_record_act(SP_KIND_FORK, operation);
    return announce(SP_ACT_PROCESS, r);
}

int sp_acts_thread(const char *operation, PyObject *args)
{
    (void)operation;
    PyObject *function = sp_acts_item(args, 0);
    if (function && PyMethod_Check(function))
        function = PyMethod_GET_FUNCTION(function);
    if (function && PyFunction_Check(function)) {
        size_t size;
        const char *name =
            sp_text_view(((PyFunctionObject *)function)->func_qualname, &size);
        sp_native_thread_function(name, size);
    }
    return 0;
}
