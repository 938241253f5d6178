/* Events as dicts. */
#ifndef SP_BINDING_CONVERT_H
#define SP_BINDING_CONVERT_H

#include <Python.h>

#include "read/read_event.h"

/* A new dict; what `json.loads` would make of the event's line, but that strings with bytes
 * that are no UTF-8 hold them as os.fsdecode() has them. `names`: a dict (borrowed) that keeps
 * the keys seen so far, so that they are made once. */
PyObject *sp_event_to_dict(const struct sp_read_event *event, PyObject *names);

#endif
