/* What a trace says about files, the network and processes, as lists of tuples. */
#ifndef SP_BINDING_TABLES_H
#define SP_BINDING_TABLES_H

#include <Python.h>

/* `within`: bytes of positions, or None for the whole trace. New lists. */
PyObject *sp_trace_files(PyObject *trace, PyObject *within);
PyObject *sp_trace_network(PyObject *trace, PyObject *within);
PyObject *sp_trace_processes(PyObject *trace, PyObject *within);

struct sp_each;

/* Goes through the events without the GIL. 0, or -1 with an exception. */
int sp_trace_each(PyObject *trace, PyObject *within, struct sp_each *each);

#endif
