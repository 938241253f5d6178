/* `Trace.search`: positions of the events that answer a question. */
#ifndef SP_BINDING_SEARCH_H
#define SP_BINDING_SEARCH_H

#include <Python.h>

/* (within, kinds, start, stop, pid, tid, layer, text): bytes of positions or None, a tuple of
 * bytes, two numbers, two numbers or None, two bytes. Gives bytes of positions. */
PyObject *sp_trace_search(PyObject *trace, PyObject *args);

#endif
