/* The type `sandpit._native.Trace`: the events of a trace by position. */
#ifndef SP_BINDING_TRACE_TYPE_H
#define SP_BINDING_TRACE_TYPE_H

#include <Python.h>

extern PyType_Spec sp_trace_type_spec;

#endif
