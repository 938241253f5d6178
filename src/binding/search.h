/* `Trace.search`: positions of the events that answer a question. */
#ifndef SP_BINDING_SEARCH_H
#define SP_BINDING_SEARCH_H

#include <Python.h>

#include <stdint.h>

/* The positions in `from`, bytes or None (borrowed), aligned: *ret_within is the caller's to free; NULL:
 * all. 0, or -1 with an exception. */
int sp_positions_of(PyObject *from, uint64_t **ret_within, size_t *ret_count);

/* (within, kinds, start, stop, pid, tid, layer, text): bytes of positions or None, a tuple of
 * bytes, two numbers, two numbers or None, two bytes. Gives bytes of positions. */
PyObject *sp_trace_search(PyObject *trace, PyObject *args);

#endif
