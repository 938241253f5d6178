#define Py_BUILD_CORE 1
#include "agent/code.h"

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif
#include <opcode.h>
#include <string.h>

#include "agent/agent.h"

#define STACK_FRAMES_MAX 16
#define WALK_FRAMES_MAX                                                                \
    100000 /* deep recursion of library code is walked through up to here */

/* ---- frames -------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030d0000
#define FRAME_CODE(f) ((f)->f_executable)
#define FRAME_NEXT(f) ((f)->instr_ptr)
#elif PY_VERSION_HEX >= 0x030b0000
#define FRAME_CODE(f) ((PyObject *)(f)->f_code)
#define FRAME_NEXT(f) ((f)->prev_instr)
#endif

#if PY_VERSION_HEX >= 0x030b0000
/* A frame that the interpreter is still setting up, or that stands for C code only. */
static bool frame_incomplete(const sp_frame *frame)
{
#if PY_VERSION_HEX >= 0x030c0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK)
        return true;
#endif
    if (!FRAME_CODE(frame) || !PyCode_Check(FRAME_CODE(frame)))
        return true;
    const PyCodeObject *code = (const PyCodeObject *)FRAME_CODE(frame);
    return frame->owner != FRAME_OWNED_BY_GENERATOR &&
           FRAME_NEXT(frame) <
               (_Py_CODEUNIT *)code->co_code_adaptive + code->_co_firsttraceable;
}

static sp_frame *first_complete(sp_frame *frame)
{
    while (frame && frame_incomplete(frame))
        frame = frame->previous;
    return frame;
}

sp_frame *sp_frame_top(PyThreadState *state)
{
    if (!state)
        return NULL;
#if PY_VERSION_HEX >= 0x030d0000
    return first_complete(state->current_frame);
#else
    return first_complete(state->cframe ? state->cframe->current_frame : NULL);
#endif
}

sp_frame *sp_frame_back(sp_frame *frame)
{
    return first_complete(frame->previous);
}

PyCodeObject *sp_frame_code(sp_frame *frame)
{
    return (PyCodeObject *)FRAME_CODE(frame);
}

PyObject *sp_frame_argument(sp_frame *frame, int index)
{
    PyCodeObject *code = sp_frame_code(frame);
    if (index >= code->co_argcount)
        return NULL;
    PyObject *value = frame->localsplus[index];
    /* An argument that an inner function uses lies in a cell from the first instruction on. */
    return value && PyCell_Check(value) ? PyCell_GET(value) : value;
}

int sp_frame_position(sp_frame *frame)
{
    PyCodeObject *code = sp_frame_code(frame);
    ptrdiff_t unit = FRAME_NEXT(frame) - (_Py_CODEUNIT *)code->co_code_adaptive;
    return (int)unit * (int)sizeof(_Py_CODEUNIT);
}

bool sp_frame_at_import(sp_frame *frame)
{
    const _Py_CODEUNIT *at = (const _Py_CODEUNIT *)FRAME_NEXT(frame);
    const uint8_t *code = (const uint8_t *)at;
    while (code[0] == EXTENDED_ARG)
        code += sizeof(_Py_CODEUNIT);
    return code[0] == IMPORT_NAME;
}

int sp_frame_line(sp_frame *frame)
{
    int line = PyCode_Addr2Line(sp_frame_code(frame), sp_frame_position(frame));
    return line > 0 ? line : 0;
}

#else /* 3.9, 3.10: frames are objects */

sp_frame *sp_frame_top(PyThreadState *state)
{
    return state ? state->frame : NULL;
}

sp_frame *sp_frame_back(sp_frame *frame)
{
    return frame->f_back;
}

PyCodeObject *sp_frame_code(sp_frame *frame)
{
    return frame->f_code;
}

PyObject *sp_frame_argument(sp_frame *frame, int index)
{
    if (index >= frame->f_code->co_argcount)
        return NULL;
    PyObject *value = frame->f_localsplus[index];
    if (value)
        return value;
    /* It was moved into a cell, for an inner function that uses it. */
    PyCodeObject *code = frame->f_code;
    for (Py_ssize_t i = 0; code->co_cell2arg && i < PyTuple_GET_SIZE(code->co_cellvars);
         i++) {
        PyObject *cell = frame->f_localsplus[code->co_nlocals + i];
        if (code->co_cell2arg[i] == index && cell && PyCell_Check(cell))
            return PyCell_GET(cell);
    }
    return NULL;
}

int sp_frame_position(sp_frame *frame)
{
    return frame->f_lasti;
}

bool sp_frame_at_import(sp_frame *frame)
{
    PyObject *text = frame->f_code->co_code;
#if PY_VERSION_HEX >= 0x030a0000
    Py_ssize_t at = (Py_ssize_t)frame->f_lasti * 2; /* counted in instructions */
#else
    Py_ssize_t at = frame->f_lasti;
#endif
    const uint8_t *code = (const uint8_t *)PyBytes_AS_STRING(text);
    if (at < 0)
        return false;
    while (at + 3 < PyBytes_GET_SIZE(text) && code[at] == EXTENDED_ARG)
        at += 2;
    return at < PyBytes_GET_SIZE(text) && code[at] == IMPORT_NAME;
}

int sp_frame_line(sp_frame *frame)
{
    int line = PyFrame_GetLineNumber(frame);
    return line > 0 ? line : 0;
}
#endif

PyObject *sp_frame_globals(sp_frame *frame)
{
    return frame->f_globals;
}

/* ---- texts --------------------------------------------------------------------------- */

/* One code point as UTF-8; a lone surrogate of "surrogateescape" as the byte it stands for. */
static size_t encode(Py_UCS4 c, char out[4])
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c >= 0xdc80 && c <= 0xdcff)
        return out[0] = (char)(c - 0xdc00), 1;
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Not PyUnicode_AsUTF8(): it keeps its result in the object, whose size the program can see
 * to have grown (sys.getsizeof). */
const char *sp_text_view(PyObject *text, size_t *ret_size)
{
    static char buffer[SP_TEXT_MAX + 4];
    *ret_size = 0;
    if (!text || !PyUnicode_Check(text))
        return "";
#if PY_VERSION_HEX < 0x030c0000
    if (!PyUnicode_IS_READY(text))
        return "";
#endif
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        *ret_size = (size_t)length;
        return (const char *)PyUnicode_1BYTE_DATA(text);
    }
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    size_t size = 0;
    for (Py_ssize_t i = 0; i < length && size < SP_TEXT_MAX; i++)
        size += encode(PyUnicode_READ(kind, data, i), buffer + size);
    *ret_size = size;
    return buffer;
}

/* ---- whose code ------------------------------------------------------------------------ */

static bool starts_with(const char *text, size_t size, const char *start)
{
    size_t start_size = strlen(start);
    return size >= start_size && memcmp(text, start, start_size) == 0;
}

static bool under_python(const char *file, size_t size)
{
    const char *root = sp_agent_text(sp_agent.config->python_offset);
    for (size_t length; (length = strlen(root)) > 0; root += length + 1)
        if (size > length && memcmp(file, root, length) == 0)
            return true;
    return false;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t end_size = strlen(end);
    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* Code that imports on behalf of its caller. */
static bool machinery(const char *file, size_t size)
{
    static const char *const ends[] = {
        "/importlib/__init__.py",
        "/importlib/_bootstrap.py",
        "/importlib/_bootstrap_external.py",
        "/importlib/util.py",
        "/runpy.py",
        "/zipimport.py",
        "<frozen importlib._bootstrap>",
        "<frozen importlib._bootstrap_external>",
        "<frozen importlib.util>",
        "<frozen zipimport>",
        "<frozen runpy>",
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(file, size, ends[i]))
            return true;
    return false;
}

/* Library code with functions that import what they are told to. */
static bool carrier(const char *file, size_t size)
{
    static const char *const ends[] = {"/pkgutil.py", "/pickle.py", "/pydoc.py",
                                       "/unittest/loader.py", "/logging/config.py"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(file, size, ends[i]))
            return true;
    return false;
}

static enum sp_origin origin_of(const char *file, size_t size)
{
    const char *program = sp_agent_text(sp_agent.config->program_offset);
    if (*program && strlen(program) == size && memcmp(file, program, size) == 0)
        return SP_ORIGIN_REVIEWED;
    if (sp_agent.file_size > 0 && sp_agent.file_size == size &&
        memcmp(file, sp_agent.file, size) == 0)
        return SP_ORIGIN_REVIEWED;
    if (starts_with(file, size, "<frozen "))
        return machinery(file, size) ? SP_ORIGIN_MACHINERY : SP_ORIGIN_LIBRARY;
    if (size == 0 || file[0] == '<')
        return SP_ORIGIN_TEXT;
    if (!under_python(file, size))
        return SP_ORIGIN_REVIEWED;
    if (machinery(file, size))
        return SP_ORIGIN_MACHINERY;
    return carrier(file, size) ? SP_ORIGIN_CARRIER : SP_ORIGIN_LIBRARY;
}

/* By the name object, which all code objects of a file share and which an entry keeps
 * alive, so that its address cannot come to mean another name. */
#define ORIGINS 1024u /* power of two */
static struct {
    PyObject *file;
    enum sp_origin origin;
} origins[ORIGINS];

enum sp_origin sp_code_origin(PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    unsigned hash = (unsigned)((uintptr_t)file >> 4) * 2654435761u >> 22;
    for (unsigned i = 0; i < 4; i++) {
        unsigned at = (hash + i) & (ORIGINS - 1);
        if (origins[at].file == file)
            return origins[at].origin;
        if (origins[at].file)
            continue;
        size_t size;
        const char *text = sp_text_view(file, &size);
        enum sp_origin origin = origin_of(text, size);
        /* Names of a subinterpreter die with it. */
        if (sp_lane_owned()) {
            Py_INCREF(file);
            origins[at].origin = origin;
            origins[at].file = file;
        }
        return origin;
    }
    size_t size;
    const char *text = sp_text_view(file, &size);
    return origin_of(text, size);
}

/* With -m, the named package is the program wherever it lies. */
static bool of_named_package(sp_frame *frame)
{
    if (!sp_agent.package_size)
        return false;
    PyObject *globals = sp_frame_globals(frame);
    if (!globals || !PyDict_Check(globals))
        return false;
    static PyObject *key;
    if (!key && !(key = PyUnicode_InternFromString("__name__"))) {
        PyErr_Clear();
        return false;
    }
    size_t size;
    const char *name = sp_text_view(PyDict_GetItemWithError(globals, key), &size);
    if (size == 8 && memcmp(name, "__main__", 8) == 0)
        return true;
    return size >= sp_agent.package_size &&
           memcmp(name, sp_agent.package, sp_agent.package_size) == 0 &&
           (size == sp_agent.package_size || name[sp_agent.package_size] == '.');
}

bool sp_frame_reviewed(sp_frame *frame)
{
    bool text = false;
    for (int i = 0; frame && i < WALK_FRAMES_MAX; frame = sp_frame_back(frame), i++) {
        switch (sp_code_origin(sp_frame_code(frame))) {
        case SP_ORIGIN_REVIEWED:
            return true;
        case SP_ORIGIN_LIBRARY:
        case SP_ORIGIN_CARRIER:
            return of_named_package(frame);
        case SP_ORIGIN_TEXT:
            text = true;
            break;
        case SP_ORIGIN_MACHINERY:
            if (!text)
                return false;
            break;
        }
    }
    return text; /* text all the way down: -c, or what was typed in */
}

sp_frame *sp_frame_site(sp_frame *top)
{
    sp_frame *text = NULL;
    for (int i = 0; top && i < WALK_FRAMES_MAX; top = sp_frame_back(top), i++) {
        switch (sp_code_origin(sp_frame_code(top))) {
        case SP_ORIGIN_REVIEWED:
            return top;
        case SP_ORIGIN_LIBRARY:
        case SP_ORIGIN_CARRIER:
            if (of_named_package(top))
                return top;
            text = NULL;
            break;
        case SP_ORIGIN_TEXT:
            if (!text)
                text = top;
            break;
        case SP_ORIGIN_MACHINERY:
            break;
        }
    }
    return text;
}

sp_frame *sp_frame_importer(sp_frame *top)
{
    for (; top; top = sp_frame_back(top)) {
        enum sp_origin origin = sp_code_origin(sp_frame_code(top));
        bool passes_on = origin == SP_ORIGIN_MACHINERY || origin == SP_ORIGIN_CARRIER;
        /* What they import by a statement of their own, they need themselves. */
        if (!passes_on || sp_frame_at_import(top))
            return top;
    }
    return NULL;
}

/* ---- fields ------------------------------------------------------------------------------- */

int64_t sp_interpreter_number(void)
{
    PyThreadState *state = _PyThreadState_UncheckedGet();
    bool sub = state && sp_agent.main && state->interp != sp_agent.main;
    return sp_unlikely(sub) ? PyInterpreterState_GetID(state->interp) : 0;
}

void sp_record_at(struct sp_lane_record *r)
{
    int64_t interpreter = sp_interpreter_number();
    if (sp_unlikely(interpreter > 0))
        sp_record_int(r, SP_FIELD_INTERPRETER, interpreter);
    sp_frame *site = sp_frame_site(sp_frame_top(_PyThreadState_UncheckedGet()));
    if (!site)
        return;
    size_t size;
    const char *file = sp_text_view(sp_frame_code(site)->co_filename, &size);
    sp_record_text(r, SP_FIELD_AT_FILE, file, size);
    sp_record_int(r, SP_FIELD_AT_LINE, sp_frame_line(site));
}

struct sp_lane_record *sp_record_act(enum sp_kind kind, const char *operation)
{
    struct sp_lane_record *r = &sp_lane_scratch;
    sp_record_begin(r, kind);
    sp_record_string(r, SP_FIELD_OP, operation);
    sp_record_at(r);
    return r;
}

void sp_stack_line(struct sp_stack_text *stack, PyCodeObject *code, int line)
{
    char number[16];
    size_t file_size, name_size;
    size_t number_size = (size_t)snprintf(number, sizeof number, ":%d ", line);
    const char *file = sp_text_view(code->co_filename, &file_size);
    if (stack->size + file_size + number_size + 2 > sizeof stack->bytes)
        return;
    char *at = stack->bytes + stack->size;
    memcpy(at, file, file_size);
    memcpy(at + file_size, number, number_size);
    size_t used = file_size + number_size;
#if PY_VERSION_HEX >= 0x030b0000
    const char *name = sp_text_view(code->co_qualname, &name_size);
#else
    const char *name = sp_text_view(code->co_name, &name_size);
#endif
    if (stack->size + used + name_size + 1 > sizeof stack->bytes)
        return;
    memcpy(at + used, name, name_size);
    at[used + name_size] = '\n';
    stack->size += used + name_size + 1;
}

void sp_record_stack(struct sp_lane_record *r)
{
    static struct sp_stack_text stack;
    stack.size = 0;
    sp_frame *frame = sp_frame_top(_PyThreadState_UncheckedGet());
    for (int i = 0; frame && i < STACK_FRAMES_MAX; frame = sp_frame_back(frame))
        if (sp_code_origin(sp_frame_code(frame)) != SP_ORIGIN_MACHINERY) {
            sp_stack_line(&stack, sp_frame_code(frame), sp_frame_line(frame));
            i++;
        }
    if (stack.size > 0)
        sp_record_text(r, SP_FIELD_STACK, stack.bytes, stack.size - 1);
}
