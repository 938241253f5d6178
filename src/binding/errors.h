/* Raising what the package defines: the only place where faults become exceptions. */
#ifndef SP_BINDING_ERRORS_H
#define SP_BINDING_ERRORS_H

#include <Python.h>

#include "base/error.h"
#include "trace/fault.h"

/* Raises sandpit.TraceError with line and byte; `name` (a str or None, borrowed) says which
 * file. Returns NULL. */
PyObject *sp_raise_fault(PyObject *name, const struct sp_fault *fault);

/* Raises sandpit.UsageError: what a caller asked for makes no sense. Returns NULL. */
PyObject *sp_raise_error(const struct sp_error *error);

#endif
