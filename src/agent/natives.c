#include "agent/natives.h"

#include <stdlib.h>
#include <string.h>

#include "agent/code.h"
#include "agent/lane.h"

#define PLACES_FIRST 512u
#define PLACES_MAX   (2 * SP_FUNCTIONS_MAX)
#define NAME_BYTES   400u

/* The low bits of a key tell apart what one address can stand for. */
#define KEY_CLASS    1u
#define KEY_INSTANCE 2u

struct place {
    uintptr_t key; /* 0: free */
    uint32_t id;
    uint32_t version; /* of a class: tp_version_tag when its name was last compared */
};

static PyTypeObject *method_wrapper; /* the type has no public name */

static struct place *places;
static uint32_t places_mask;
static uint32_t places_used;

/* As the interpreter keeps a bound slot of a class of C. */
struct method_wrapper {
    PyObject_HEAD PyWrapperDescrObject *descr;
    PyObject *self;
};

void sp_natives_start(void)
{
    PyObject *bound =
        method_wrapper ? NULL : PyObject_GetAttrString(Py_None, "__str__");
    if (bound)
        method_wrapper = Py_TYPE(bound);
    else
        PyErr_Clear();
    Py_XDECREF(bound);
}

/* The usual kinds first: to ask for a subtype costs a walk through the bases. */
static inline uintptr_t key_of(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    if (type == &PyCFunction_Type)
        return (uintptr_t)((PyCFunctionObject *)callable)->m_ml;
    if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type)
        return (uintptr_t)((PyMethodDescrObject *)callable)->d_method;
    if (PyType_Check(callable))
        return (uintptr_t)callable | KEY_CLASS;
    if (type == &PyWrapperDescr_Type)
        return (uintptr_t)((PyWrapperDescrObject *)callable)->d_base;
    if (type == method_wrapper)
        return (uintptr_t)((struct method_wrapper *)callable)->descr->d_base;
    if (PyCFunction_Check(callable))
        return (uintptr_t)((PyCFunctionObject *)callable)->m_ml;
    return (uintptr_t)type | KEY_INSTANCE;
}

/* ---- what to call it ---------------------------------------------------------------------- */

struct naming {
    char name[NAME_BYTES];
    char module[NAME_BYTES];
};

static void text_of(char to[NAME_BYTES], PyObject *text)
{
    size_t size;
    const char *view = sp_text_view(text, &size);
    if (size >= NAME_BYTES)
        size = NAME_BYTES - 1;
    memcpy(to, view, size);
    to[size] = '\0';
}

static PyObject *module_of(PyTypeObject *type)
{
    static PyObject *key;
    if (!key)
        key = PyUnicode_InternFromString("__module__");
    if (!key || !type->tp_dict || !PyDict_CheckExact(type->tp_dict))
        return NULL;
    return PyDict_GetItemWithError(type->tp_dict, key);
}

/* A class's own name and module. Classes of Python code name themselves freely; those of C
 * have the module in front of the name. */
static void name_class(struct naming *n, PyTypeObject *type)
{
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        text_of(n->name, ((PyHeapTypeObject *)type)->ht_qualname);
        text_of(n->module, module_of(type));
        return;
    }
    const char *dot = strrchr(type->tp_name, '.');
    snprintf(n->name, sizeof n->name, "%s", dot ? dot + 1 : type->tp_name);
    if (dot)
        snprintf(n->module, sizeof n->module, "%.*s", (int)(dot - type->tp_name),
                 type->tp_name);
    else
        snprintf(n->module, sizeof n->module, "builtins");
}

static void name_method(struct naming *n, PyTypeObject *type, const char *name)
{
    name_class(n, type);
    size_t size = strlen(n->name);
    snprintf(n->name + size, sizeof n->name - size, ".%s", name);
}

static void name_function(struct naming *n, PyCFunctionObject *function)
{
    const char *name = function->m_ml->ml_name;
    PyObject *self = PyCFunction_GET_SELF((PyObject *)function);
    if (self && !PyModule_Check(self)) {
        name_method(n, PyType_Check(self) ? (PyTypeObject *)self : Py_TYPE(self), name);
        return;
    }
    snprintf(n->name, sizeof n->name, "%s", name);
    text_of(n->module, function->m_module);
}

static void name_callable(struct naming *n, PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    if (PyCFunction_Check(callable))
        name_function(n, (PyCFunctionObject *)callable);
    else if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type)
        name_method(n, PyDescr_TYPE(callable),
                    ((PyMethodDescrObject *)callable)->d_method->ml_name);
    else if (type == &PyWrapperDescr_Type)
        name_method(n, PyDescr_TYPE(callable),
                    ((PyWrapperDescrObject *)callable)->d_base->name);
    else if (type == method_wrapper)
        name_method(n, PyDescr_TYPE(((struct method_wrapper *)callable)->descr),
                    ((struct method_wrapper *)callable)->descr->d_base->name);
    else if (PyType_Check(callable))
        name_class(n, (PyTypeObject *)callable);
    else
        name_method(n, type, "__call__");
    if (n->name[0] == '\0')
        memcpy(n->name, "?", 2);
}

/* ---- ids ------------------------------------------------------------------------------------ */

static uint32_t add(const struct naming *n)
{
    return sp_lane_function_add(&(struct sp_lane_function){
        .native = true,
        .name = n->name,
        .name_size = strlen(n->name),
        .module = n->module,
        .module_size = strlen(n->module),
        .file = "",
    });
}

/* Whether the lane knows `id` by that name. */
static bool same_name(uint32_t id, const struct naming *n)
{
    const struct sp_ring *ring = sp_lane.ring;
    const uint8_t *at =
        (const uint8_t *)ring + ring->arena_offset + ring->function_offsets[id];
    struct sp_ring_function head;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    size_t name_size = strlen(n->name);
    size_t module_size = strlen(n->module);
    return head.name_size == name_size && head.module_size == module_size &&
           memcmp(at, n->name, name_size) == 0 &&
           memcmp(at + name_size, n->module, module_size) == 0;
}

static inline uint32_t place_at(uintptr_t key)
{
    uint32_t at = (uint32_t)((key >> 3 ^ key) * 2654435761u) >> 4;
    for (at &= places_mask; places[at].key && places[at].key != key;)
        at = (at + 1) & places_mask;
    return at;
}

static bool places_grow(void)
{
    uint32_t count = places ? (places_mask + 1) * 2 : PLACES_FIRST;
    struct place *old = places;
    uint32_t old_count = places ? places_mask + 1 : 0;
    struct place *fresh = count <= PLACES_MAX ? calloc(count, sizeof *fresh) : NULL;
    if (!fresh)
        return false;
    places = fresh;
    places_mask = count - 1;
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i].key)
            places[place_at(old[i].key)] = old[i];
    free(old);
    return true;
}

/* A class whose address was another's before, or that changed: its name tells. */
static uint32_t class_again(struct place *place, PyObject *callable, uint32_t version)
{
    struct naming n = {0};
    name_callable(&n, callable);
    if (place->id == 0 || !sp_lane_ready() || !same_name(place->id, &n))
        place->id = add(&n);
    place->version = version;
    return place->id;
}

static uint32_t add_place(uintptr_t key, PyObject *callable, uint32_t version)
{
    if ((!places || places_used >= places_mask / 2) && !places_grow())
        return 0;
    struct naming n = {0};
    name_callable(&n, callable);
    struct place *place = &places[place_at(key)];
    *place = (struct place){.key = key, .id = add(&n), .version = version};
    places_used++;
    return place->id;
}

/* Version tags are never given twice, so one that fits is proof that the class is the same.
 * 0: the class has none at the moment. Classes of C that live for ever need no proof. */
static inline uint32_t version_of(uintptr_t key, PyObject *callable, bool *ret_fleeting)
{
    *ret_fleeting = false;
    if (!(key & (KEY_CLASS | KEY_INSTANCE)))
        return 0;
    PyTypeObject *type = key & KEY_CLASS ? (PyTypeObject *)callable : Py_TYPE(callable);
    *ret_fleeting = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    return *ret_fleeting ? type->tp_version_tag : 0;
}

uint32_t sp_native_id(PyObject *callable)
{
    bool fleeting;
    uintptr_t key = key_of(callable);
    uint32_t version = version_of(key, callable, &fleeting);
    if (__builtin_expect(places != NULL, 1)) {
        struct place *place = &places[place_at(key)];
        if (__builtin_expect(place->key == key, 1)) {
            if (!fleeting || (version != 0 && version == place->version))
                return place->id;
            return class_again(place, callable, version);
        }
    }
    return add_place(key, callable, version);
}
