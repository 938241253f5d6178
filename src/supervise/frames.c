#include "supervise/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "supervise/lines.h"
#include "sys/guest.h"

#define THREADS_MAX 1024u
#define STEPS_MAX                                                                      \
    (4 * SP_FRAMES_MAX)    /* frames looked at, those of no Python code included */
#define OBJECT_BYTES 1024u /* of a struct, as far as its fields of interest reach */
#define PTHREAD_BYTES                                                                  \
    1024u /* of the C library's struct of a thread: its tid lies in there */

#define OWNED_BY_C 3 /* FRAME_OWNED_BY_CSTACK, 3.12 on */

struct walk {
    const struct sp_ring_frames *layout;
    pid_t pid;
    unsigned minor; /* of the interpreter: 9 for 3.9 */
};

/* ---- structs of the guest, copied -------------------------------------------------------------- */

struct object {
    uint64_t address;
    size_t size;
    uint8_t bytes[OBJECT_BYTES];
};

/* Reads a struct up to the end of its farthest field. */
static bool object_read(const struct walk *walk, uint64_t address,
                        const uint16_t *offsets, size_t count,
                        struct object *ret_object)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        if ((size_t)offsets[i] + 8 > size)
            size = (size_t)offsets[i] + 8;
    if (address == 0 || size > OBJECT_BYTES)
        return false;
    ret_object->address = address;
    ret_object->size = size;
    return sp_guest_read(walk->pid, address, ret_object->bytes, size) == 0;
}

static uint64_t field64(const struct object *object, uint16_t offset)
{
    uint64_t value;
    memcpy(&value, object->bytes + offset, sizeof value);
    return value;
}

static uint32_t field32(const struct object *object, uint16_t offset)
{
    uint32_t value;
    memcpy(&value, object->bytes + offset, sizeof value);
    return value;
}

/* ---- texts ------------------------------------------------------------------------------------------ */

static size_t utf8_put(char *to, size_t room, uint32_t c)
{
    if (c < 0x80 && room >= 1)
        return to[0] = (char)c, 1;
    if (c >= 0x80 && c < 0x800 && room >= 2) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c >= 0x800 && c < 0x10000 && room >= 3) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    if (c >= 0x10000 && room >= 4) {
        to[0] = (char)(0xf0 | (c >> 18 & 7));
        to[1] = (char)(0x80 | (c >> 12 & 0x3f));
        to[2] = (char)(0x80 | (c >> 6 & 0x3f));
        to[3] = (char)(0x80 | (c & 0x3f));
        return 4;
    }
    return 0;
}

static uint32_t unit_at(const uint8_t *data, unsigned width, size_t i)
{
    uint32_t value = 0;
    memcpy(&value, data + i * width, width);
    return value;
}

/* A str object: compact ones only, as every name of a code object is. */
static void text_read(const struct walk *walk, uint64_t address, char *to, size_t room)
{
    const struct sp_ring_frames *l = walk->layout;
    const uint16_t offsets[] = {l->unicode_length, l->unicode_state};
    struct object text;
    uint8_t data[4 * SP_FRAME_FILE_MAX];
    to[0] = '\0';
    if (!object_read(walk, address, offsets, 2, &text))
        return;
    uint32_t state = field32(&text, l->unicode_state);
    unsigned width = state >> 2 & 7;
    bool compact = state >> 5 & 1;
    bool ascii = state >> 6 & 1;
    uint64_t length = field64(&text, l->unicode_length);
    if (!compact || (width != 1 && width != 2 && width != 4))
        return;
    if (length > room - 1)
        length = room - 1;
    uint64_t at = address + (ascii ? l->unicode_ascii_data : l->unicode_compact_data);
    if (length * width > sizeof data ||
        sp_guest_read(walk->pid, at, data, length * width) < 0)
        return;
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        size_t put = utf8_put(to + size, room - 1 - size, unit_at(data, width, i));
        if (put == 0)
            break;
        size += put;
    }
    to[size] = '\0';
}

/* ---- lines ------------------------------------------------------------------------------------------- */

static int line_read(const struct walk *walk, const struct object *code,
                     const struct object *frame)
{
    const struct sp_ring_frames *l = walk->layout;
    static uint8_t table[SP_LINES_BYTES_MAX];
    const uint16_t offsets[] = {l->bytes_size};
    struct object bytes;
    int first = (int)field32(code, l->code_firstlineno);
    if (!object_read(walk, field64(code, l->code_linetable), offsets, 1, &bytes))
        return first > 0 ? first : 0;
    uint64_t size = field64(&bytes, l->bytes_size);
    if (size > sizeof table)
        size = sizeof table;
    if (sp_guest_read(walk->pid, bytes.address + l->bytes_data, table, size) < 0)
        return 0;
    if (walk->minor >= 11) {
        uint64_t begin = code->address + l->code_instructions;
        uint64_t unit = (field64(frame, l->frame_instruction) - begin) / 2;
        return sp_lines_locations(table, size, first, unit);
    }
    int32_t last = (int32_t)field32(frame, l->frame_instruction);
    if (last < 0)
        return first > 0 ? first : 0;
    return walk->minor >= 10 ? sp_lines_table(table, size, first, (uint64_t)last * 2)
                             : sp_lines_numbers(table, size, first, (uint64_t)last);
}

/* ---- frames -------------------------------------------------------------------------------------------- */

static bool frame_object(const struct walk *walk, uint64_t address,
                         struct object *ret_frame)
{
    const struct sp_ring_frames *l = walk->layout;
    const uint16_t offsets[] = {l->frame_back, l->frame_code, l->frame_instruction,
                                l->frame_owner};
    return object_read(walk, address, offsets, 4, ret_frame);
}

static bool frame_read(const struct walk *walk, const struct object *frame,
                       struct sp_frame *ret_frame)
{
    const struct sp_ring_frames *l = walk->layout;
    const uint16_t offsets[] = {l->code_filename, l->code_name, l->code_qualname,
                                l->code_firstlineno, l->code_linetable};
    struct object code;
    if (walk->minor >= 12 && l->frame_owner &&
        frame->bytes[l->frame_owner] >= OWNED_BY_C)
        return false;
    if (!object_read(walk, field64(frame, l->frame_code), offsets, 5, &code))
        return false;
    uint16_t name = l->code_qualname ? l->code_qualname : l->code_name;
    text_read(walk, field64(&code, l->code_filename), ret_frame->file,
              sizeof ret_frame->file);
    text_read(walk, field64(&code, name), ret_frame->name, sizeof ret_frame->name);
    if (ret_frame->file[0] == '\0')
        return false;
    ret_frame->line = line_read(walk, &code, frame);
    return true;
}

static unsigned frames_read(const struct walk *walk, uint64_t address,
                            struct sp_frame *ret_frames, unsigned max)
{
    unsigned count = 0;
    struct object frame;
    for (unsigned i = 0; i < STEPS_MAX && count < max; i++) {
        if (!frame_object(walk, address, &frame))
            break;
        if (frame_read(walk, &frame, &ret_frames[count]))
            count++;
        address = field64(&frame, walk->layout->frame_back);
    }
    return count;
}

/* ---- threads ------------------------------------------------------------------------------------------- */

/* Before 3.11 a thread state holds a pthread_t only: the address of the C library's struct,
 * in which the thread's id lies, at a place that is the library's own affair. */
static bool pthread_is(const struct walk *walk, uint64_t pthread, pid_t tid)
{
    uint8_t bytes[PTHREAD_BYTES];
    if (pthread == 0 || sp_guest_read(walk->pid, pthread, bytes, sizeof bytes) < 0)
        return false;
    for (size_t at = 0; at < sizeof bytes; at += sizeof(int32_t)) {
        int32_t value;
        memcpy(&value, bytes + at, sizeof value);
        if (value == tid)
            return true;
    }
    return false;
}

static bool thread_is(const struct walk *walk, const struct object *thread, pid_t tid)
{
    const struct sp_ring_frames *l = walk->layout;
    if (l->thread_native_id)
        return field64(thread, l->thread_native_id) == (uint64_t)tid;
    return pthread_is(walk, field64(thread, l->thread_ident), tid);
}

/* Address of the innermost frame of the thread's state, 0: it has none. */
static uint64_t frame_of(const struct walk *walk, const struct object *thread)
{
    const struct sp_ring_frames *l = walk->layout;
    uint64_t frame = field64(thread, l->thread_frame);
    const uint16_t offsets[] = {l->cframe_frame};
    struct object cframe;
    if (!(l->flags & SP_FRAMES_CFRAME))
        return frame;
    return object_read(walk, frame, offsets, 1, &cframe)
               ? field64(&cframe, l->cframe_frame)
               : 0;
}

/* Address of the innermost frame of thread `tid`, 0: none is known. */
static uint64_t frame_of_thread(const struct walk *walk, pid_t tid)
{
    const struct sp_ring_frames *l = walk->layout;
    const uint16_t offsets[] = {l->thread_next, l->thread_native_id, l->thread_ident,
                                l->thread_frame};
    uint64_t address = 0;
    if (l->version_hex >> 24 != 3 ||
        sp_guest_read(walk->pid, l->threads_head, &address, sizeof address) < 0)
        return 0;
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        struct object thread;
        if (!object_read(walk, address, offsets, 4, &thread))
            return 0;
        if (thread_is(walk, &thread, tid))
            return frame_of(walk, &thread);
        address = field64(&thread, l->thread_next);
    }
    return 0;
}

static struct walk walk_begin(const struct sp_ring_frames *layout, pid_t pid)
{
    return (struct walk){layout, pid, layout->version_hex >> 16 & 0xff};
}

unsigned sp_frames_walk(const struct sp_ring_frames *layout, pid_t pid, pid_t tid,
                        struct sp_frame *ret_frames, unsigned max)
{
    const struct walk walk = walk_begin(layout, pid);
    uint64_t frame = frame_of_thread(&walk, tid);
    return frames_read(&walk, frame, ret_frames,
                       max < SP_FRAMES_MAX ? max : SP_FRAMES_MAX);
}

uint64_t sp_frames_spot(const struct sp_ring_frames *layout, pid_t pid, pid_t tid)
{
    const struct walk walk = walk_begin(layout, pid);
    const uint16_t offsets[] = {layout->frame_instruction};
    struct object frame;
    if (!object_read(&walk, frame_of_thread(&walk, tid), offsets, 1, &frame))
        return 0;
    return sp_ring_spot(frame.address,
                        layout->flags & SP_FRAMES_OBJECT
                            ? field32(&frame, layout->frame_instruction)
                            : field64(&frame, layout->frame_instruction));
}
