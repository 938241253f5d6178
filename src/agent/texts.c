#include "agent/texts.h"

#include <string.h>

#include "agent/acts.h"
#include "agent/agent.h"
#include "agent/code.h"

#define START_BYTES 200

/* The whole text as UTF-8, borrowed: from the object, else from *ret_made, which the caller
 * releases. NULL: no text (an AST). */
static const char *whole_text(PyObject *source, size_t *ret_size, PyObject **ret_made)
{
    Py_ssize_t size = 0;
    *ret_made = NULL;
    if (source && PyBytes_Check(source)) {
        *ret_size = (size_t)PyBytes_GET_SIZE(source);
        return PyBytes_AS_STRING(source);
    }
    if (!source || !PyUnicode_Check(source))
        return NULL;
    if (PyUnicode_IS_COMPACT_ASCII(source)) {
        *ret_size = (size_t)PyUnicode_GET_LENGTH(source);
        return (const char *)PyUnicode_1BYTE_DATA(source);
    }
    char *bytes = NULL;
    *ret_made = PyUnicode_AsEncodedString(source, "utf-8", "surrogatepass");
    if (!*ret_made || PyBytes_AsStringAndSize(*ret_made, &bytes, &size) < 0)
        PyErr_Clear();
    *ret_size = (size_t)size;
    return bytes;
}

static uint64_t hash_text(const char *text, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u ^ size;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    return hash | 1;
}

/* compile(source) is announced twice: by the function, and by the parser it calls, with
 * nothing in between. */
static bool said_just_now(uint64_t hash, sp_frame *top)
{
    static struct {
        uint64_t hash;
        sp_frame *frame;
        int position;
        uint32_t tid;
        bool direct;
    } last;
    int position = sp_frame_position(top);
    bool again = last.hash == hash && last.frame == top && last.position == position &&
                 last.tid == sp_lane_tid() && last.direct;
    last.hash = hash;
    last.frame = top;
    last.position = position;
    last.tid = sp_lane_tid();
    last.direct = !again; /* a third one is a new call from the same place */
    return again;
}

#define TEXTS 1024u

/* The text is sent along with the first event only. */
static bool sent_before(uint64_t hash)
{
    static uint64_t sent[TEXTS];
    if (sent[hash % TEXTS] == hash)
        return true;
    sent[hash % TEXTS] = hash;
    return false;
}

int sp_texts_compile(const char *operation, PyObject *args)
{
    sp_frame *top = sp_frame_top(_PyThreadState_UncheckedGet());
    /* Called straight from reviewed code: what a library compiles for itself (an import, a
     * named tuple) is its own. */
    if (!top || sp_code_origin(sp_frame_code(top)) == SP_ORIGIN_MACHINERY ||
        !sp_frame_reviewed(top))
        return 0;
    size_t size;
    PyObject *made;
    const char *text = whole_text(sp_acts_item(args, 0), &size, &made);
    if (!text)
        return 0;
    uint64_t hash = hash_text(text, size);
    if (!said_just_now(hash, top)) {
        bool send = sp_lane_owned() && !sent_before(hash) && sp_lane_text(text, size);
        struct sp_lane_record *r = sp_record_act(SP_KIND_CODE, operation);
        if (send)
            r->event.flags |= SP_EVENT_TEXT;
        sp_acts_add_path(r, SP_FIELD_FILE, sp_acts_item(args, 1));
        sp_record_int(r, SP_FIELD_SIZE, (int64_t)size);
        sp_record_text(r, SP_FIELD_START, text,
                       size < START_BYTES ? size : START_BYTES);
        sp_lane_event(r);
    }
    Py_XDECREF(made);
    return 0;
}
