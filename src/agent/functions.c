#include "agent/functions.h"

#include <stdlib.h>
#include <string.h>

#include "agent/code.h"
#include "agent/extra.h"
#include "agent/lane.h"
#include "agent/qualname.h"

Py_ssize_t sp_functions_index = -1;

/* For code that nothing can be hung on. */
static struct sp_function nameless;

bool sp_functions_start(void)
{
    Py_ssize_t index = sp_extra_request();
    if (index < 0 || (sp_functions_index >= 0 && index != sp_functions_index))
        return false; /* each interpreter counts for itself; ours must be alike in all */
    sp_functions_index = index;
    return true;
}

/* Text belongs to whoever runs it; anything else tells by its own file or module. `top` is the
 * innermost frame, which may be that of the code itself. */
static bool reviewed_of(PyCodeObject *code, sp_frame *frame, sp_frame *top)
{
    enum sp_origin origin = sp_code_origin(code);
    if (origin == SP_ORIGIN_TEXT)
        return !top || sp_frame_reviewed(top);
    return frame ? sp_frame_reviewed(frame) : origin == SP_ORIGIN_REVIEWED;
}

/* sp_text_view() answers in one buffer; three texts are needed at once. */
static const char *text_keep(char *kept, size_t room, PyObject *text, size_t *ret_size)
{
    const char *view = sp_text_view(text, ret_size);
    if (*ret_size > room)
        *ret_size = room;
    memcpy(kept, view, *ret_size);
    return kept;
}

static PyObject *module_of(PyObject *globals)
{
    static PyObject *key;
    if (!key)
        key = PyUnicode_InternFromString("__name__");
    if (!key || !globals || !PyDict_CheckExact(globals))
        return NULL;
    return PyDict_GetItemWithError(globals, key);
}

static void describe(struct sp_function *function, PyCodeObject *code, sp_frame *frame)
{
    static char name[512];
    static char module[512];
    sp_frame *top = sp_frame_top(PyThreadState_Get());
    if (!frame && top && sp_frame_code(top) == code)
        frame = top;
    bool reviewed = reviewed_of(code, frame, top);
    bool body = PyUnicode_CompareWithASCIIString(code->co_name, "<module>") == 0;
    if (body)
        sp_qualname_learn(code);
    PyObject *globals = frame ? sp_frame_globals(frame) : NULL;
    struct sp_lane_function f = {
        .line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0,
        .reviewed = reviewed,
    };
    f.name = sp_qualname(code, name, sizeof name, &f.name_size);
    f.module = text_keep(module, sizeof module, module_of(globals), &f.module_size);
    f.file = sp_text_view(code->co_filename, &f.file_size);
    function->id = sp_lane_function_add(&f);
    function->reviewed = reviewed;
    function->keep = reviewed ? 0 : SP_QUIET;
    if (sp_code_origin(code) == SP_ORIGIN_MACHINERY || (body && !reviewed))
        function->quiet = SP_QUIET;
}

struct sp_function *sp_function_new(PyCodeObject *code, sp_frame *frame)
{
    struct sp_function *function = calloc(1, sizeof *function);
    if (!function)
        return &nameless;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    describe(function, code, frame);
    if (!sp_extra_set(code, sp_functions_index, function)) {
        free(function);
        function = &nameless;
    }
    PyErr_Restore(type, value, trace);
    return function;
}
