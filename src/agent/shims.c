#include "agent/shims.h"

#include <stddef.h>

#define SHIMS_MAX 8

/* The interpreter keeps pointers to these. */
static PyMethodDef definitions[SHIMS_MAX];
static int definitions_used;

static PyObject *module_dict(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules ? PyDict_GetItemString(modules, name) : NULL;
    return module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
}

static void replace(PyObject *dict, const char *name, PyMethodDef like, sp_shim shim,
                    PyObject *self, PyObject *module, PyObject **ret_real)
{
    PyObject *real = PyDict_GetItemString(dict, name);
    if (definitions_used == SHIMS_MAX)
        return;
    PyMethodDef *definition = &definitions[definitions_used];
    *definition = like;
    definition->ml_meth = (PyCFunction)(void (*)(void))shim;
    definition->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    PyObject *function = PyCFunction_NewEx(definition, self, module);
    if (function) {
        /* As many objects for the collector to see as before. */
        PyObject_GC_UnTrack(function);
        Py_INCREF(real);
        *ret_real = real;
        if (PyDict_SetItemString(dict, name, function) == 0)
            definitions_used++;
        Py_DECREF(function);
    }
    PyErr_Clear();
}

void sp_shim_builtin(const char *module, const char *name, sp_shim shim,
                     PyObject **ret_real)
{
    PyObject *dict = module_dict(module);
    PyObject *real = dict ? PyDict_GetItemString(dict, name) : NULL;
    if (!real || !PyCFunction_CheckExact(real))
        return;
    PyCFunctionObject *c = (PyCFunctionObject *)real;
    replace(dict, name, *c->m_ml, shim, c->m_self, c->m_module, ret_real);
}

void sp_shim_function(const char *module, const char *name, sp_shim shim,
                      PyObject **ret_real)
{
    PyObject *dict = module_dict(module);
    PyObject *real = dict ? PyDict_GetItemString(dict, name) : NULL;
    if (!real || !PyFunction_Check(real))
        return;
    PyFunctionObject *function = (PyFunctionObject *)real;
    PyMethodDef like = {.ml_name = name};
    if (function->func_doc && PyUnicode_Check(function->func_doc))
        like.ml_doc = PyUnicode_AsUTF8(function->func_doc);
    replace(dict, name, like, shim, NULL, function->func_module, ret_real);
}
