/* The type `sandpit._native.Trace`: the events of a trace by position. */
#ifndef SP_BINDING_TRACE_TYPE_H
#define SP_BINDING_TRACE_TYPE_H

#include <Python.h>

#include <stdbool.h>

#include "trace/fault.h"

struct sp_index;

/* Of a Trace: its index (borrowed), made on first need; NULL with an exception. */
struct sp_index *sp_trace_index(PyObject *trace);

/* Whether an object is one, else false with an exception. */
bool sp_trace_check(PyObject *object);

/* Raises TraceError, with the name of the trace. NULL. */
PyObject *sp_trace_fault(PyObject *trace, const struct sp_fault *fault);

extern PyType_Spec sp_trace_type_spec;

#endif
