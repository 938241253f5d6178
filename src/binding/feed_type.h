/* The type `sandpit._native.Feed`: the events of a stream, out of the bytes that come. */
#ifndef SP_BINDING_FEED_TYPE_H
#define SP_BINDING_FEED_TYPE_H

#include <Python.h>

extern PyType_Spec sp_feed_type_spec;

#endif
