#include "agent/loads.h"

#include "agent/acts.h"
#include "agent/agent.h"
#include "agent/code.h"

void sp_loads_extension(const char *module, size_t module_size, const char *file,
                        size_t file_size)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_NATIVE, "import");
    sp_record_text(r, SP_FIELD_MODULE, module, module_size);
    sp_record_text(r, SP_FIELD_LIBRARY, file, file_size);
    sp_lane_event(r);
}

/* The name that a ctypes.CDLL object bears, in its own dict. */
static PyObject *library_name(PyObject *library)
{
    if (!library || PyUnicode_Check(library) || PyBytes_Check(library))
        return library;
    PyObject **dict = _PyObject_GetDictPtr(library);
    PyObject *name = dict && *dict ? PyDict_GetItemString(*dict, "_name") : NULL;
    return name;
}

int sp_loads_ctypes(const char *operation, PyObject *args)
{
    struct sp_lane_record *r = sp_record_act(SP_KIND_NATIVE, operation);
    sp_acts_add_path(r, SP_FIELD_LIBRARY, library_name(sp_acts_item(args, 0)));
    sp_acts_add_path(r, SP_FIELD_SYMBOL, sp_acts_item(args, 1));
    sp_lane_event(r);
    return 0;
}

#define PLACES 1024u /* power of two */

int sp_loads_once(const char *operation, PyObject *args)
{
    (void)args;
    static uint64_t places[PLACES];
    sp_frame *top = sp_frame_top(_PyThreadState_UncheckedGet());
    /* The standard library's own use is no door that the program opened. */
    if (!top || !sp_frame_reviewed(top))
        return 0;
    uint64_t place = (uintptr_t)operation;
    place = (place ^ (uintptr_t)sp_frame_code(top)->co_filename) * 0xff51afd7ed558ccdu;
    place = (place ^ (uint64_t)sp_frame_line(top)) * 0xff51afd7ed558ccdu;
    if (places[place >> 54] == place)
        return 0;
    places[place >> 54] = place;
    sp_lane_event(sp_record_act(SP_KIND_NATIVE, operation));
    return 0;
}
