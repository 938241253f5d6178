/* The type `sandpit._native.Calls`: who called what in a trace. */
#ifndef SP_BINDING_CALLS_TYPE_H
#define SP_BINDING_CALLS_TYPE_H

#include <Python.h>

extern PyType_Spec sp_calls_type_spec;

#endif
