/* Native code comes in: extension modules, ctypes; and other doors that lead below Python. */
#ifndef SP_AGENT_LOADS_H
#define SP_AGENT_LOADS_H

#include <Python.h>
#include <stddef.h>

/* An extension module is being loaded from a file. */
void sp_loads_extension(const char *module, size_t module_size, const char *file,
                        size_t file_size);

/* From the audit hook; always 0. */
int sp_loads_ctypes(const char *operation, PyObject *args); /* each one */
int sp_loads_once(const char *operation,
                  PyObject *args); /* once per place in the program */

#endif
