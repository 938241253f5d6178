#include "agent/qualname.h"

#include <stdlib.h>
#include <string.h>

#include "agent/code.h"
#include "agent/extra.h"

static const char *text_keep(PyObject *text, char *buffer, size_t room,
                             size_t *ret_size)
{
    const char *view = sp_text_view(text, ret_size);
    if (*ret_size > room)
        *ret_size = room;
    memcpy(buffer, view, *ret_size);
    return buffer;
}

#if PY_VERSION_HEX >= 0x030b0000

const char *sp_qualname(PyCodeObject *code, char *buffer, size_t room, size_t *ret_size)
{
    return text_keep(code->co_qualname, buffer, room, ret_size);
}

void sp_qualname_learn(PyCodeObject *code)
{
    (void)code;
}

#else

#define NESTING_MAX 20
#define NAME_BYTES  480u

/* The name, hung on the code objects for which it is not the plain one. */
static Py_ssize_t names = -1;

const char *sp_qualname(PyCodeObject *code, char *buffer, size_t room, size_t *ret_size)
{
    const char *name = names >= 0 ? sp_extra_get(code, names) : NULL;
    if (!name)
        return text_keep(code->co_name, buffer, room, ret_size);
    *ret_size = strnlen(name, room);
    memcpy(buffer, name, *ret_size);
    return buffer;
}

/* A name on its way down; what does not fit is cut. */
struct name {
    size_t size;
    char text[NAME_BYTES];
};

static void append(struct name *name, const char *text, size_t size)
{
    size_t room = sizeof name->text - 1 - name->size;
    if (size > room)
        size = room;
    memcpy(name->text + name->size, text, size);
    name->size += size;
    name->text[name->size] = '\0';
}

static void keep(PyCodeObject *code, const struct name *name)
{
    char *kept = strdup(name->text);
    if (kept && !sp_extra_set(code, names, kept))
        free(kept);
}

/* Names what lies in `code`, whose own qualified name and a dot are `prefix`. The compiler
 * says "<locals>" below functions, which alone have fast local variables. */
static void learn(PyCodeObject *code, const struct name *prefix, int nesting)
{
    PyObject *constants = code->co_consts;
    if (nesting == NESTING_MAX || !PyTuple_Check(constants))
        return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyCodeObject *inner = (PyCodeObject *)PyTuple_GET_ITEM(constants, i);
        if (!PyCode_Check(inner))
            continue;
        struct name name = *prefix;
        size_t size;
        const char *plain = sp_text_view(inner->co_name, &size);
        append(&name, plain, size);
        if (prefix->size > 0)
            keep(inner, &name);
        const char *below = inner->co_flags & CO_OPTIMIZED ? ".<locals>." : ".";
        append(&name, below, strlen(below));
        learn(inner, &name, nesting + 1);
    }
}

void sp_qualname_learn(PyCodeObject *code)
{
    if (names < 0)
        names = sp_extra_request();
    if (names >= 0)
        learn(code, &(struct name){0}, 0);
}

#endif
