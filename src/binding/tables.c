#include <Python.h>

#include "binding/tables.h"

#include <stdlib.h>
#include <string.h>

#include "binding/search.h"
#include "binding/trace_type.h"
#include "read/each.h"
#include "read/index.h"
#include "read/processes.h"
#include "read/uses.h"

int sp_trace_each(PyObject *trace, PyObject *within, struct sp_each *each)
{
    uint64_t *positions;
    struct sp_fault fault;
    int result;
    const struct sp_index *index = sp_trace_index(trace);
    if (index == NULL || sp_positions_of(within, &positions, &each->within_count) < 0)
        return -1;
    each->within = positions;
    Py_BEGIN_ALLOW_THREADS result = sp_each(index, each, &fault);
    free(positions);
    Py_END_ALLOW_THREADS each->within = NULL;
    if (result < 0)
        sp_trace_fault(trace, &fault);
    return result;
}

/* Appends an item, which is given up. 0, or -1 with an exception. */
static int append(PyObject *list, PyObject *item)
{
    const int result = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return result;
}

static PyObject *text(const char *data, size_t size)
{
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, "surrogateescape");
}

static PyObject *item_text(const struct sp_tally_item *item)
{
    return text(item->text, item->size);
}

/* ---- files, network ------------------------------------------------------------------------ */

static PyObject *places_of(const struct sp_uses *u, const struct sp_use *use)
{
    PyObject *made = PyDict_New();
    for (uint32_t i = 0; made != NULL && i < use->places_count; i++) {
        PyObject *place = item_text(&u->places.items[use->places[i].place]);
        PyObject *count = PyLong_FromUnsignedLong(use->places[i].count);
        const int failed =
            place == NULL || count == NULL || PyDict_SetItem(made, place, count) < 0;
        Py_XDECREF(place);
        Py_XDECREF(count);
        if (failed) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

static PyObject *host_of(const struct sp_uses *u, const struct sp_use *use)
{
    if (use->host > 0)
        return item_text(&u->hosts.items[use->host - 1]);
    Py_RETURN_NONE;
}

/* (name, host, count of each way ..., places, elsewhere) */
static PyObject *use_tuple(const struct sp_uses *u, uint32_t i)
{
    const struct sp_use *use = &u->uses[i];
    const uint64_t *c = use->counts;
    PyObject *name = item_text(&u->names.items[i]);
    PyObject *host = name == NULL ? NULL : host_of(u, use);
    PyObject *places = host == NULL ? NULL : places_of(u, use);
    if (places == NULL) {
        Py_XDECREF(name);
        Py_XDECREF(host);
        return NULL;
    }
    return Py_BuildValue("(NNKKKKKKKNK)", name, host, (unsigned long long)c[0],
                         (unsigned long long)c[1], (unsigned long long)c[2],
                         (unsigned long long)c[3], (unsigned long long)c[4],
                         (unsigned long long)c[5], (unsigned long long)c[6], places,
                         (unsigned long long)use->elsewhere);
}

static PyObject *uses_list(const struct sp_uses *u)
{
    PyObject *made = PyList_New(0);
    for (uint32_t i = 0; made != NULL && i < u->names.count && i < u->capacity; i++)
        if (append(made, use_tuple(u, i)) < 0) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

static int take_file(void *to, const struct sp_read_event *event,
                     struct sp_fault *ret_fault)
{
    (void)ret_fault;
    sp_files_add(to, event);
    return 0;
}

static int take_network(void *to, const struct sp_read_event *event,
                        struct sp_fault *ret_fault)
{
    (void)ret_fault;
    sp_network_add(to, event);
    return 0;
}

static PyObject *uses_of(PyObject *trace, PyObject *within, struct sp_each *each)
{
    struct sp_uses uses;
    sp_uses_init(&uses);
    each->to = &uses;
    PyObject *made = sp_trace_each(trace, within, each) < 0 ? NULL : uses_list(&uses);
    sp_uses_release(&uses);
    each->to = NULL;
    return made;
}

PyObject *sp_trace_files(PyObject *trace, PyObject *within)
{
    static const bool kinds[SP_READ_RETURN + 1] = {
        [SP_KIND_OPEN] = true, [SP_KIND_FILE] = true, [SP_KIND_VIOLATION] = true};
    struct sp_each each = {.kinds = kinds, .take = take_file};
    return uses_of(trace, within, &each);
}

PyObject *sp_trace_network(PyObject *trace, PyObject *within)
{
    static const bool kinds[SP_READ_RETURN + 1] = {[SP_KIND_CONNECT] = true,
                                                   [SP_KIND_BIND] = true,
                                                   [SP_KIND_RESOLVE] = true,
                                                   [SP_KIND_VIOLATION] = true};
    struct sp_each each = {.kinds = kinds, .take = take_network};
    return uses_of(trace, within, &each);
}

/* ---- processes ----------------------------------------------------------------------------- */

static PyObject *argv_of(const struct sp_process *one)
{
    PyObject *made = PyList_New(0);
    for (size_t at = 0; made != NULL && at < one->argv.size;) {
        const size_t size = strlen(one->argv.data + at);
        if (append(made, text(one->argv.data + at, size)) < 0) {
            Py_DECREF(made);
            return NULL;
        }
        at += size + 1;
    }
    return made;
}

/* (number of the parent in the list or -1, pid, parent's pid, start, end, how it ended, code or
 * signal, path, argv, whether that was cut, started, traced, denied) */
static PyObject *process_tuple(const struct sp_process *one, long parent,
                               unsigned long long end_ns)
{
    PyObject *path = text(one->path.size == 0 ? "" : one->path.data, one->path.size);
    PyObject *argv = path == NULL ? NULL : argv_of(one);
    if (argv == NULL) {
        Py_XDECREF(path);
        return NULL;
    }
    return Py_BuildValue("(lLLKKiLNNiiiK)", parent, (long long)one->pid,
                         (long long)one->parent_pid, (unsigned long long)one->start_ns,
                         end_ns, (int)one->end, (long long)one->end_value, path, argv,
                         (int)one->argv_cut, (int)one->started, (int)one->traced,
                         (unsigned long long)one->denied);
}

static PyObject *processes_list(const struct sp_processes *p)
{
    unsigned depth = 0;
    long place = 0;
    long *places = calloc((size_t)p->count + 1, sizeof *places);
    if (places == NULL)
        return PyErr_NoMemory();
    PyObject *made = PyList_New(0);
    for (uint32_t i = sp_processes_first(p); made != NULL && i != SP_PROCESSES_NONE;
         i = sp_processes_behind(p, i, &depth)) {
        const struct sp_process *one = &p->items[i];
        const long parent = one->parent == SP_PROCESSES_NONE ? -1 : places[one->parent];
        places[i] = place++;
        if (append(made, process_tuple(one, parent,
                                       one->start_ns + sp_process_duration(p, one))) <
            0) {
            Py_DECREF(made);
            made = NULL;
        }
    }
    free(places);
    return made;
}

static int take_process(void *to, const struct sp_read_event *event,
                        struct sp_fault *ret_fault)
{
    (void)ret_fault;
    sp_processes_add(to, event);
    return 0;
}

PyObject *sp_trace_processes(PyObject *trace, PyObject *within)
{
    struct sp_processes processes;
    static const bool kinds[SP_READ_RETURN + 1] = {
        [SP_KIND_START] = true,     [SP_KIND_FORK] = true,      [SP_KIND_EXEC] = true,
        [SP_KIND_EXIT] = true,      [SP_KIND_VIOLATION] = true, [SP_KIND_END] = true,
        [SP_KIND_CHECKPOINT] = true};
    struct sp_each each = {.kinds = kinds, .take = take_process, .to = &processes};
    sp_processes_init(&processes);
    PyObject *made =
        sp_trace_each(trace, within, &each) < 0 ? NULL : processes_list(&processes);
    sp_processes_release(&processes);
    return made;
}
