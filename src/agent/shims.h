/* C functions in the place of others, alike in everything that a program looks at. */
#ifndef SP_AGENT_SHIMS_H
#define SP_AGENT_SHIMS_H

#include <Python.h>

typedef PyObject *(*sp_shim)(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *names);

/* Puts `shim` in the place of a built-in function of a loaded module; what was there goes
 * to *ret_real first (a reference of ours for good). Nothing happens when the module is not
 * loaded or keeps something else there. Each shim is used once. */
void sp_shim_builtin(const char *module, const char *name, sp_shim shim,
                     PyObject **ret_real);

/* The same for a function of Python code. */
void sp_shim_function(const char *module, const char *name, sp_shim shim,
                      PyObject **ret_real);

#endif
