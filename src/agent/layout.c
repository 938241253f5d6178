#define Py_BUILD_CORE 1
#include "agent/layout.h"

#include <Python.h>
#include <stddef.h>

#include <internal/pycore_interp.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif

#include "agent/agent.h"
#include "agent/lane.h"

/* Fields that every version has. */
static void fill_objects(struct sp_ring_frames *f)
{
    f->thread_next = offsetof(PyThreadState, next);
    f->thread_ident = offsetof(PyThreadState, thread_id);
    f->code_filename = offsetof(PyCodeObject, co_filename);
    f->code_name = offsetof(PyCodeObject, co_name);
    f->code_firstlineno = offsetof(PyCodeObject, co_firstlineno);
    f->bytes_data = offsetof(PyBytesObject, ob_sval);
    f->bytes_size = offsetof(PyVarObject, ob_size);
    f->unicode_length = offsetof(PyASCIIObject, length);
    f->unicode_state = offsetof(PyASCIIObject, state);
    f->unicode_ascii_data = sizeof(PyASCIIObject);
    f->unicode_compact_data = sizeof(PyCompactUnicodeObject);
    f->unicode_utf8_size = offsetof(PyCompactUnicodeObject, utf8_length);
}

#if PY_VERSION_HEX >= 0x030b0000
static void fill_frames(struct sp_ring_frames *f)
{
    f->threads_head = (uint64_t)(uintptr_t)&sp_agent.main->threads.head;
    f->thread_native_id = offsetof(PyThreadState, native_thread_id);
#if PY_VERSION_HEX >= 0x030d0000
    f->thread_frame = offsetof(PyThreadState, current_frame);
    f->frame_code = offsetof(struct _PyInterpreterFrame, f_executable);
    f->frame_instruction = offsetof(struct _PyInterpreterFrame, instr_ptr);
#else
    f->flags = SP_FRAMES_CFRAME;
    f->thread_frame = offsetof(PyThreadState, cframe);
    f->cframe_frame = offsetof(_PyCFrame, current_frame);
    f->frame_code = offsetof(struct _PyInterpreterFrame, f_code);
    f->frame_instruction = offsetof(struct _PyInterpreterFrame, prev_instr);
#endif
    f->frame_back = offsetof(struct _PyInterpreterFrame, previous);
    f->frame_owner = offsetof(struct _PyInterpreterFrame, owner);
    f->code_qualname = offsetof(PyCodeObject, co_qualname);
    f->code_linetable = offsetof(PyCodeObject, co_linetable);
    f->code_instructions = offsetof(PyCodeObject, co_code_adaptive);
}
#else
static void fill_frames(struct sp_ring_frames *f)
{
    f->flags = SP_FRAMES_OBJECT;
    f->threads_head = (uint64_t)(uintptr_t)&sp_agent.main->tstate_head;
    f->thread_frame = offsetof(PyThreadState, frame);
    f->frame_back = offsetof(PyFrameObject, f_back);
    f->frame_code = offsetof(PyFrameObject, f_code);
    f->frame_instruction = offsetof(PyFrameObject, f_lasti);
#if PY_VERSION_HEX >= 0x030a0000
    f->code_linetable = offsetof(PyCodeObject, co_linetable);
#else
    f->code_linetable = offsetof(PyCodeObject, co_lnotab);
#endif
}
#endif

#if PY_VERSION_HEX >= 0x030b0000
static uint64_t spot_of(const PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030d0000
    const struct _PyInterpreterFrame *frame = state->current_frame;
    return frame ? sp_ring_spot((uintptr_t)frame, (uintptr_t)frame->instr_ptr) : 0;
#else
    const struct _PyInterpreterFrame *frame = state->cframe->current_frame;
    return frame ? sp_ring_spot((uintptr_t)frame, (uintptr_t)frame->prev_instr) : 0;
#endif
}
#else
static uint64_t spot_of(const PyThreadState *state)
{
    const PyFrameObject *frame = state->frame;
    return frame ? sp_ring_spot((uintptr_t)frame, (uint32_t)frame->f_lasti) : 0;
}
#endif

uint64_t sp_layout_spot(void)
{
    PyThreadState *state = _PyThreadState_UncheckedGet();
#if PY_VERSION_HEX < 0x030c0000
    /* Before 3.12 that is the process's current one, perhaps another thread's. */
    if (state != PyGILState_GetThisThreadState())
        return 0;
#endif
    return state ? spot_of(state) : 0;
}

void sp_layout_publish(void)
{
    struct sp_ring_frames *f = &sp_lane.ring->frames;
    fill_objects(f);
    fill_frames(f);
    /* Last: a reader that sees the version sees the rest. */
    __atomic_store_n(&f->version_hex, (uint32_t)PY_VERSION_HEX, __ATOMIC_RELEASE);
}
