#include "agent/imports.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/import_judge.h"
#include "agent/lane.h"
#include "agent/loads.h"
#include "agent/shims.h"
#include "agent/turn.h"
#include "agent/waiting.h"
#include "base/clock.h"

/* ---- audit events --------------------------------------------------------------------------- */

static PyObject *item(PyObject *args, Py_ssize_t index)
{
    return index < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, index) : NULL;
}

/* The file of a module is known: its event can be written. */
static int found(const char *module, size_t module_size, const char *file,
                 size_t file_size, bool native)
{
    static struct sp_import import;
    bool waited = sp_waiting_take(module, module_size, &import);
    if (!waited) {
        if (!sp_import_describe(&import, module, module_size))
            return 0;
        if (sp_import_decide(&import) < 0)
            return -1;
    }
    if (native && sp_import_decide_file(&import, file, file_size) < 0)
        return -1;
    import.native = native;
    sp_import_write(&import, file, file_size);
    if (native)
        sp_loads_extension(import.module, import.module_size, file, file_size);
    return 0;
}

int sp_imports_event(const char *operation, PyObject *args)
{
    (void)operation;
    static char name[256];
    size_t size;
    const char *text = sp_text_view(item(args, 0), &size);
    if (size > sizeof name)
        size = sizeof name;
    memcpy(name, text, size);
    PyObject *file = item(args, 1);
    if (file && PyUnicode_Check(file)) {
        size_t file_size;
        static char path[SP_TEXT_MAX];
        const char *file_text = sp_text_view(file, &file_size);
        file_size = file_size < sizeof path ? file_size : sizeof path;
        memcpy(path, file_text, file_size);
        return found(name, size, path, file_size, true);
    }
    if (!sp_agent.program || !sp_lane_owned()) /* there is no shim that would do it */
        sp_waiting_flush(false);
    static struct sp_import import;
    sp_import_describe(&import, name, size);
    if (sp_import_decide(&import) < 0)
        return -1;
    sp_waiting_add(&import);
    return 0;
}

static bool named(PyObject *text, const char *name)
{
    size_t size;
    const char *found_name = sp_text_view(text, &size);
    return strlen(name) == size && memcmp(found_name, name, size) == 0;
}

/* The name that a module object, a spec or a str bears; no code of the program runs. */
static PyObject *name_in(PyObject *object)
{
    if (!object)
        return NULL;
    if (PyUnicode_Check(object))
        return object;
    if (PyModule_Check(object)) {
        PyObject *dict = PyModule_GetDict(object);
        return dict ? PyDict_GetItemString(dict, "__name__") : NULL;
    }
    PyObject **dict = _PyObject_GetDictPtr(object);
    return dict && *dict ? PyDict_GetItemString(*dict, "name") : NULL;
}

#define LOADER_FRAMES_MAX    3
#define LOADER_ARGUMENTS_MAX 6

/* Which module the loader in the innermost frames is about to run: exec_module(self, module)
 * of any loader, load_module(self, name), or runpy's _run_code(..., mod_name, mod_spec, ...).
 * NULL: it is no loader. */
static PyObject *module_loaded(sp_frame *frame)
{
    for (int i = 0; frame && i < LOADER_FRAMES_MAX; frame = sp_frame_back(frame), i++) {
        PyCodeObject *code = sp_frame_code(frame);
        if (named(code->co_name, "exec_module")) {
            for (int a = 0; a < LOADER_ARGUMENTS_MAX; a++) {
                PyObject *value = sp_frame_argument(frame, a);
                if (value && PyModule_Check(value))
                    return name_in(value);
            }
            return NULL;
        }
        bool machinery = sp_code_origin(code) == SP_ORIGIN_MACHINERY;
        if (machinery && named(code->co_name, "load_module"))
            return name_in(sp_frame_argument(frame, 1));
        if (machinery && named(code->co_name, "_run_code")) {
            PyObject *name = name_in(sp_frame_argument(frame, 4));
            return name ? name : name_in(sp_frame_argument(frame, 3));
        }
        if (!machinery)
            return NULL;
    }
    return NULL;
}

int sp_imports_exec(const char *operation, PyObject *args)
{
    (void)operation;
    PyObject *object = item(args, 0);
    if (!object || !PyCode_Check(object))
        return 0;
    PyCodeObject *code = (PyCodeObject *)object;
    if (!named(code->co_name, "<module>"))
        return 0;
    PyObject *module = module_loaded(sp_frame_top(_PyThreadState_UncheckedGet()));
    if (!module)
        return 0;
    static char name[256];
    static char path[SP_TEXT_MAX];
    size_t size, path_size;
    const char *text = sp_text_view(module, &size);
    size = size < sizeof name ? size : sizeof name;
    memcpy(name, text, size);
    text = sp_text_view(code->co_filename, &path_size);
    path_size = path_size < sizeof path ? path_size : sizeof path;
    memcpy(path, text, path_size);
    return found(name, size, path, path_size, false);
}

/* ---- loaded modules: the shims ---------------------------------------------------------------- */

static PyObject *real_import; /* builtins.__import__ as it was */
static PyObject *real_gcd;    /* _gcd_import of the import system */

/* Import statements that were seen: (file, line of the function, instruction, name). */
#define SITES 8192u
#define SITES_NEARBY                                                                   \
    4u /* where one may lie: two that fall on one place do not put each other out */
static uint64_t sites[SITES];

static uint64_t site_of(sp_frame *frame, PyObject *name)
{
    PyCodeObject *code = sp_frame_code(frame);
    /* Hashes of the texts, not their addresses: text that is compiled and thrown away leaves
     * its addresses to the next. */
    uint64_t parts[] = {(uint64_t)PyObject_Hash(code->co_filename),
                        (uint64_t)sp_frame_position(frame),
                        (uint64_t)PyObject_Hash(name), (uint64_t)code->co_firstlineno};
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        hash = (hash ^ parts[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash | 1;
}

/* Where it lies, or where it is to. */
static uint64_t *place_of(uint64_t site)
{
    uint64_t first = site >> 1;
    for (uint64_t i = 0; i < SITES_NEARBY; i++) {
        uint64_t *place = &sites[(first + i) % SITES];
        if (*place == site || *place == 0)
            return place;
    }
    return &sites[first % SITES];
}

static PyObject *text_in(PyObject *globals, const char *key)
{
    PyObject *value = PyDict_GetItemString(globals, key);
    return value && PyUnicode_Check(value) && PyUnicode_GET_LENGTH(value) > 0 ? value
                                                                              : NULL;
}

/* The module's full name into `out`; 0 when it cannot be told (the import will fail). */
static size_t full_name(PyObject *name, PyObject *globals, long level, char *out,
                        size_t room)
{
    size_t size;
    size_t used = 0;
    const char *text;
    if (level > 0) {
        if (!globals || !PyDict_Check(globals))
            return 0;
        PyObject *package = text_in(globals, "__package__");
        bool module_name = !package;
        if (module_name)
            package = text_in(globals, "__name__");
        if (module_name && PyDict_GetItemString(globals, "__path__"))
            module_name = false;
        text = sp_text_view(package, &size);
        for (long up = level - 1 + module_name; up > 0; up--) {
            const char *dot = memrchr(text, '.', size);
            size = dot ? (size_t)(dot - text) : 0;
        }
        if (size == 0 || size + 1 >= room)
            return 0;
        memcpy(out, text, size);
        used = size;
    }
    text = sp_text_view(name, &size);
    if (used > 0 && size > 0)
        out[used++] = '.';
    if (size > room - used)
        size = room - used;
    memcpy(out + used, text, size);
    return used + size;
}

static PyObject *loaded_module(const char *name, size_t size)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *key = PyUnicode_DecodeUTF8(name, (Py_ssize_t)size, "replace");
    PyObject *module = key && modules && PyDict_Check(modules)
                           ? PyDict_GetItemWithError(modules, key)
                           : NULL;
    Py_XDECREF(key);
    PyErr_Clear();
    return module;
}

/* A module that is loaded already is imported once more: its event, with its file. */
static void write_cached(struct sp_import *import, PyObject *module)
{
    static char path[SP_TEXT_MAX];
    size_t size = 0;
    PyObject *dict = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *file = dict ? text_in(dict, "__file__") : NULL;
    if (file) {
        const char *text = sp_text_view(file, &size);
        size = size < sizeof path ? size : sizeof path;
        memcpy(path, text, size);
    }
    import->cached = true;
    sp_import_write(import, path, size);
}

/* `from package import name`, where the name is a module that is not the package's alone to
 * give: loaded already, or about to be loaded. */
static int decide_members(struct sp_import *import, PyObject *fromlist)
{
    if (!sp_agent.policy || !fromlist || !PyTuple_Check(fromlist))
        return 0;
    uint16_t package_size = import->module_size;
    PyObject *package = loaded_module(import->module, package_size);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fromlist); i++) {
        PyObject *member = PyTuple_GET_ITEM(fromlist, i);
        size_t size;
        const char *text = sp_text_view(member, &size);
        bool star = size == 1 && text[0] == '*';
        if (star || size == 0 || package_size + 1 + size > sizeof import->module)
            continue;
        import->module[package_size] = '.';
        memcpy(import->module + package_size + 1, text, size);
        import->module_size = (uint16_t)(package_size + 1 + size);
        PyObject *dict =
            package && PyModule_Check(package) ? PyModule_GetDict(package) : NULL;
        bool attribute = dict && PyDict_Contains(dict, member) == 1 &&
                         !loaded_module(import->module, import->module_size);
        int result = attribute ? 0 : sp_import_decide(import);
        import->module_size = package_size;
        if (result < 0)
            return -1;
    }
    return 0;
}

/* Before an import at a place that was not seen yet, by reviewed code, or by a library where these
 * are judged too. */
static int import_begins_in_turn(PyObject *name, PyObject *globals, PyObject *fromlist,
                                 long level)
{
    static struct sp_import import;
    static char module[256];
    size_t size = full_name(name, globals, level, module, sizeof module);
    if (size == 0)
        return 0;
    sp_import_describe(&import, module, size);
    if (sp_import_decide(&import) < 0 || decide_members(&import, fromlist) < 0)
        return -1;
    PyObject *loaded = import.direct ? loaded_module(module, size) : NULL;
    if (loaded)
        write_cached(&import, loaded);
    return 0;
}

static int import_begins(PyObject *name, PyObject *globals, PyObject *fromlist,
                         long level)
{
    sp_turn_take();
    int result = import_begins_in_turn(name, globals, fromlist, level);
    sp_turn_leave();
    return result;
}

static void import_failed(uint64_t refusals_before)
{
    sp_turn_take();
    sp_import_charge(refusals_before);
    sp_turn_leave();
}

static void import_ended(uint64_t mark)
{
    sp_turn_take();
    sp_waiting_end(mark);
    sp_turn_leave();
}

/* What was loaded by it took so long, with all that it loaded in turn. */
static void import_loaded(PyObject *name, PyObject *globals, long level,
                          uint64_t begun_ns)
{
    static char module[256];
    sp_turn_take();
    size_t size = full_name(name, globals, level, module, sizeof module);
    if (size > 0) {
        struct sp_lane_record *r = &sp_lane_scratch;
        sp_record_begin(r, SP_KIND_LOADED);
        sp_record_text(r, SP_FIELD_MODULE, module, size);
        sp_record_int(r, SP_FIELD_DURATION, (int64_t)(sp_clock_ns() - begun_ns));
        sp_record_at(r);
        sp_lane_event(r);
    }
    sp_turn_leave();
}

static const char *const import_arguments[] = {"name", "globals", "locals", "fromlist",
                                               "level"};

/* Spreads a call's arguments over `out`; false: the real function shall complain. */
static bool spread(PyObject *const *args, Py_ssize_t count, PyObject *names,
                   PyObject *out[5])
{
    if (count > 5)
        return false;
    for (Py_ssize_t i = 0; i < count; i++)
        out[i] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        for (int i = 0; i < 5; i++)
            if (named(PyTuple_GET_ITEM(names, k), import_arguments[i]))
                out[i] = args[count + k];
    return out[0] && PyUnicode_CheckExact(out[0]);
}

static long level_of(PyObject *level)
{
    int overflow;
    return level && PyLong_Check(level) ? PyLong_AsLongAndOverflow(level, &overflow)
                                        : 0;
}

/* As PyImport_Import() calls it: with an empty list, in no statement. */
static bool called_from_c(sp_frame *frame, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    return count == 5 && !names && PyList_CheckExact(args[3]) &&
           PyList_GET_SIZE(args[3]) == 0 && frame && !sp_frame_at_import(frame);
}

static PyObject *import_shim(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *names)
{
    (void)self;
    sp_frame *frame = sp_frame_top(_PyThreadState_UncheckedGet());
    PyObject *given[5] = {0};
    bool reviewed = false;
    uint64_t before = sp_import_refusals();
    sp_frame *from_c = sp_import_from_c;
    sp_import_from_c = called_from_c(frame, args, count, names) ? frame : NULL;
    bool ours = frame && !sp_agent.ended && sp_lane_owned() &&
                sp_code_origin(sp_frame_code(frame)) != SP_ORIGIN_MACHINERY &&
                spread(args, count, names, given);
    uint64_t site = ours ? site_of(frame, given[0]) : 0;
    uint64_t *seen = place_of(site);
    if (ours && *seen != site) {
        sp_frame *importer = sp_frame_importer(frame);
        bool own = importer == frame;
        reviewed = importer && sp_frame_reviewed(importer);
        if ((reviewed || sp_import_judges_libraries()) &&
            import_begins(given[0], given[1], given[3], level_of(given[4])) < 0) {
            sp_import_from_c = from_c;
            return NULL;
        }
        /* Whose text it is depends on its callers, and is asked each time. */
        enum sp_origin origin = sp_code_origin(sp_frame_code(frame));
        if (own && (reviewed || origin == SP_ORIGIN_LIBRARY))
            *seen = site;
    }
    uint64_t mark = sp_waiting_mark();
    uint64_t tried = sp_imports_tried;
    uint64_t begun_ns = sp_clock_ns();
    PyObject *result = PyObject_Vectorcall(real_import, args, (size_t)count, names);
    sp_import_from_c = from_c;
    if (sp_unlikely(sp_waiting_mark() != mark) && !sp_agent.ended)
        import_ended(mark);
    if (sp_unlikely(sp_imports_tried != tried) && result && ours && !sp_agent.ended)
        import_loaded(given[0], given[1], level_of(given[4]), begun_ns);
    if (sp_unlikely(!result && sp_import_refusals() != before) && !sp_agent.ended &&
        frame && sp_lane_owned() && sp_frame_reviewed(frame))
        import_failed(before);
    return result;
}

/* _gcd_import(name, package=None, level=0): where importlib.import_module() and the import
 * system's own imports meet. Import statements that name a member come here as well. */
static PyObject *gcd_shim(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *names)
{
    (void)self;
    sp_frame *top = sp_frame_top(_PyThreadState_UncheckedGet());
    sp_frame *frame = sp_frame_importer(top);
    uint64_t before = sp_import_refusals();
    /* With a package, importlib has resolved nothing yet; the module's code will tell. */
    bool absolute =
        count >= 1 && PyUnicode_Check(args[0]) && (count < 3 || !level_of(args[2]));
    bool ours = frame && !sp_agent.ended && sp_lane_owned();
    bool reviewed = ours && sp_frame_reviewed(frame);
    if (absolute && (reviewed || (ours && sp_import_judges_libraries())) &&
        import_begins(args[0], NULL, NULL, 0) < 0)
        return NULL;
    uint64_t tried = sp_imports_tried;
    uint64_t begun_ns = sp_clock_ns();
    PyObject *result = PyObject_Vectorcall(real_gcd, args, (size_t)count, names);
    if (sp_unlikely(sp_imports_tried != tried) && result && ours && absolute &&
        !sp_agent.ended)
        import_loaded(args[0], NULL, 0, begun_ns);
    if (sp_unlikely(!result && sp_import_refusals() != before) && reviewed &&
        !sp_agent.ended)
        import_failed(before);
    return result;
}

int sp_imports_program(const char *name, size_t size)
{
    static struct sp_import import;
    memset(&import, 0, sizeof import);
    import.tid = sp_lane_tid();
    import.direct = import.program = true;
    import.module_size =
        (uint16_t)(size < sizeof import.module ? size : sizeof import.module);
    memcpy(import.module, name, import.module_size);
    return sp_import_decide(&import);
}

void sp_imports_start(void)
{
    sp_waiting_flush(true);
    sp_shim_builtin("builtins", "__import__", import_shim, &real_import);
    sp_shim_function("_frozen_importlib", "_gcd_import", gcd_shim, &real_gcd);
}

void sp_imports_stop(void)
{
    sp_waiting_flush(true);
}
