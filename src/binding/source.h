/* What a trace is read from: a path, or a descriptor that is already open. */
#ifndef SP_BINDING_SOURCE_H
#define SP_BINDING_SOURCE_H

#include <Python.h>

/* Opens a str, bytes or os.PathLike, or duplicates an int (the caller's stays open). Returns
 * the descriptor and in *ret_name a new str for messages; -1 with an exception. */
int sp_source_open(PyObject *source, PyObject **ret_name);

#endif
