/* sys.monitoring as the program sees it: our tool is not there.
 *
 * The functions of sys.monitoring keep their objects, names and texts; what changes is the C
 * function behind each (its PyMethodDef, shared by all interpreters of the process). Whatever
 * reference the program holds, it comes here. A program that asks for our tool id is given
 * another one under that number.
 */
#ifndef SP_AGENT_CALLS_SHIM_H
#define SP_AGENT_CALLS_SHIM_H

#include <Python.h>
#include <stdbool.h>

/* The interpreter's own functions, whoever stands in front of them. `module` is the current
 * interpreter's sys.monitoring. Results as the functions', new references. */
PyObject *sp_monitoring_use(PyObject *module, int tool, const char *name);
PyObject *sp_monitoring_register(PyObject *module, int tool, long event,
                                 PyObject *callback);
PyObject *sp_monitoring_events(PyObject *module, int tool, long events);
PyObject *sp_monitoring_local(PyObject *module, int tool, PyCodeObject *code,
                              long events);

/* Finds the functions; false when they are not as expected. */
bool sp_shim_open(PyObject *module);

/* Puts ours in front, which hide `tool`. */
void sp_shim_install(int tool);

#endif
