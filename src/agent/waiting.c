#include "agent/waiting.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"

#define WAITING_MAX 64

static struct sp_import waiting[WAITING_MAX];
static size_t waiting_count;
static uint64_t next_mark;

static uint16_t copy_cut(char *to, size_t room, const char *from, size_t size)
{
    if (size > room)
        size = room;
    memcpy(to, from, size);
    return (uint16_t)size;
}

static uint16_t copy_place(char *to, size_t room, sp_frame *frame)
{
    size_t size;
    const char *file = sp_text_view(sp_frame_code(frame)->co_filename, &size);
    uint16_t used = copy_cut(to, room - 12, file, size);
    return (uint16_t)(used + snprintf(to + used, 12, ":%d", sp_frame_line(frame)));
}

__thread sp_frame *sp_import_from_c;
__thread uint64_t sp_imports_tried;

/* C code of the interpreter imports these while it does something else for its caller, whose frame
 * is the innermost one then. Nothing can be done with them that could not be done without. */
static bool inner_name(const char *module, size_t size)
{
    static const char *const names[] = {"_abc",
                                        "_bootlocale",
                                        "_codecs",
                                        "_collections_abc",
                                        "_compat_pickle",
                                        "_datetime",
                                        "_decimal",
                                        "_io",
                                        "_pydatetime",
                                        "_strptime",
                                        "_weakrefset",
                                        "abc",
                                        "codecs",
                                        "collections",
                                        "contextlib",
                                        "contextvars",
                                        "copy",
                                        "copyreg",
                                        "datetime",
                                        "decimal",
                                        "encodings",
                                        "enum",
                                        "functools",
                                        "io",
                                        "linecache",
                                        "locale",
                                        "numbers",
                                        "operator",
                                        "re",
                                        "string",
                                        "struct",
                                        "tokenize",
                                        "traceback",
                                        "types",
                                        "typing",
                                        "unicodedata",
                                        "warnings",
                                        "weakref",
                                        "zoneinfo"};
    size_t top = 0;
    while (top < size && module[top] != '.')
        top++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == top && memcmp(names[i], module, top) == 0)
            return true;
    return false;
}

bool sp_import_describe(struct sp_import *import, const char *module,
                        size_t module_size)
{
    sp_frame *top = sp_frame_top(_PyThreadState_UncheckedGet());
    sp_frame *importer = sp_frame_importer(top);
    import->tid = sp_lane_tid();
    import->interpreter = sp_interpreter_number();
    import->cached = false;
    import->native = false;
    import->program = false;
    import->module_size =
        copy_cut(import->module, sizeof import->module, module, module_size);
    import->from_size = import->at_size = 0;
    import->direct = importer && sp_frame_reviewed(importer);
    /* The import system's own needs are the interpreter's too. */
    import->inner =
        importer && (sp_code_origin(sp_frame_code(importer)) == SP_ORIGIN_MACHINERY ||
                     (importer == sp_import_from_c &&
                      inner_name(import->module, import->module_size)));
    if (importer)
        import->from_size = copy_place(import->from, sizeof import->from, importer);
    sp_frame *site = importer ? sp_frame_site(importer) : NULL;
    if (site) {
        size_t size;
        const char *file = sp_text_view(sp_frame_code(site)->co_filename, &size);
        import->at_size = copy_cut(import->at, sizeof import->at, file, size);
        import->at_line = sp_frame_line(site);
    }
    return importer != NULL;
}

void sp_import_write(const struct sp_import *import, const char *file, size_t file_size)
{
    struct sp_lane_record *r = &sp_lane_scratch;
    sp_record_begin(r, SP_KIND_IMPORT);
    sp_record_text(r, SP_FIELD_MODULE, import->module, import->module_size);
    if (file_size > 0)
        sp_record_text(r, SP_FIELD_FILE, file, file_size);
    if (import->from_size > 0)
        sp_record_text(r, SP_FIELD_FROM, import->from, import->from_size);
    sp_record_int(r, SP_FIELD_DIRECT, import->direct);
    if (import->cached)
        sp_record_int(r, SP_FIELD_CACHED, 1);
    if (import->native)
        sp_record_int(r, SP_FIELD_NATIVE, 1);
    if (import->interpreter > 0)
        sp_record_int(r, SP_FIELD_INTERPRETER, import->interpreter);
    if (import->at_size > 0) {
        sp_record_text(r, SP_FIELD_AT_FILE, import->at, import->at_size);
        sp_record_int(r, SP_FIELD_AT_LINE, import->at_line);
    }
    sp_lane_event(r);
}

static void remove_at(size_t index)
{
    waiting_count--;
    memmove(&waiting[index], &waiting[index + 1],
            (waiting_count - index) * sizeof waiting[0]);
}

void sp_waiting_add(const struct sp_import *import)
{
    sp_imports_tried++;
    if (waiting_count == WAITING_MAX) {
        sp_import_write(&waiting[0], "", 0);
        remove_at(0);
    }
    waiting[waiting_count] = *import;
    waiting[waiting_count++].mark = next_mark++;
}

bool sp_waiting_take(const char *module, size_t size, struct sp_import *ret_import)
{
    if (size > sizeof waiting[0].module)
        size = sizeof waiting[0].module;
    for (size_t i = waiting_count; i-- > 0;) {
        const struct sp_import *import = &waiting[i];
        if (import->tid == sp_lane_tid() && import->module_size == size &&
            memcmp(import->module, module, size) == 0) {
            *ret_import = *import;
            remove_at(i);
            return true;
        }
    }
    return false;
}

uint64_t sp_waiting_mark(void)
{
    return next_mark;
}

void sp_waiting_end(uint64_t mark)
{
    for (size_t i = 0; i < waiting_count;) {
        if (waiting[i].mark >= mark && waiting[i].tid == sp_lane_tid()) {
            sp_import_write(&waiting[i], "", 0);
            remove_at(i);
        } else {
            i++;
        }
    }
}

static bool loaded(const struct sp_import *import)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *name =
        PyUnicode_DecodeUTF8(import->module, import->module_size, "replace");
    bool found =
        name && modules && PyDict_Check(modules) && PyDict_Contains(modules, name) == 1;
    Py_XDECREF(name);
    PyErr_Clear();
    return found;
}

void sp_waiting_flush(bool all)
{
    for (size_t i = 0; i < waiting_count;) {
        if (all || (waiting[i].tid == sp_lane_tid() && loaded(&waiting[i]))) {
            sp_import_write(&waiting[i], "", 0);
            remove_at(i);
        } else {
            i++;
        }
    }
}
