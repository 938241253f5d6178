/* Raising what the package defines: the only place where faults become exceptions. */
#ifndef SP_BINDING_ERRORS_H
#define SP_BINDING_ERRORS_H

#include <Python.h>

#include "trace/fault.h"

/* Raises sandpit.TraceError with line and byte; `name` (a str or None, borrowed) says which
 * file. Returns NULL. */
PyObject *sp_raise_fault(PyObject *name, const struct sp_fault *fault);

#endif
