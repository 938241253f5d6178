#include "agent/audit.h"

#include <dlfcn.h>
#include <string.h>

#include "agent/acts.h"
#include "agent/agent.h"
#include "agent/calls.h"
#include "agent/calls_watch.h"
#include "agent/code.h"
#include "agent/exceptions.h"
#include "agent/imports.h"
#include "agent/lane.h"
#include "agent/layout.h"
#include "agent/loads.h"
#include "agent/network.h"
#include "agent/said.h"
#include "agent/stub.h"
#include "agent/texts.h"
#include "agent/turn.h"

/* One kind of event: what to do, and the name of the operation in the trace. */
struct watch {
    const char *event;
    int (*act)(const char *operation,
               PyObject *args); /* 0, or -1 with an exception set */
    const char *operation;
};

static struct sp_stub *stub;
static const char *current_event;

/* The names of the interpreter's own events are literals of its own file; what sys.audit() is
 * given lies where texts do. A program that says the interpreter ends shall not be believed. */
static bool interpreters_own(const char *event)
{
    Dl_info event_info;
    Dl_info interpreter_info;
    if (dladdr(event, &event_info) != 0 &&
        dladdr(&PyType_Type, &interpreter_info) != 0 &&
        event_info.dli_fbase == interpreter_info.dli_fbase)
        return true;
    sp_calls_tamper("sys.audit() of an event that is the interpreter's own to raise");
    return false;
}

/* ---- subinterpreters ------------------------------------------------------------------------ */

#define KNOWN 64u /* at a time; more are met again and again */

/* By their numbers, which are never given twice, plus one. */
static int64_t known[KNOWN];

static void tell_interpreter(const char *operation)
{
    if (sp_agent.program)
        sp_lane_event(sp_record_act(SP_KIND_THREAD, operation));
}

static void meet(PyInterpreterState *interpreter)
{
    int64_t number = PyInterpreterState_GetID(interpreter) + 1;
    int64_t *place = &known[number % KNOWN];
    if (number == 0 || *place == number)
        return;
    *place = number;
    tell_interpreter("interpreter-start");
    if (sp_agent.program && sp_agent.calls != SP_CALLS_OFF)
        sp_calls_interpreter(interpreter);
}

static void leave(PyInterpreterState *interpreter)
{
    int64_t number = PyInterpreterState_GetID(interpreter) + 1;
    if (number > 0 && known[number % KNOWN] == number) {
        known[number % KNOWN] = 0;
        tell_interpreter("interpreter-end");
    }
}

/* ---- the program's life ------------------------------------------------------------------ */

/* The module that the command line names. */
static int take_package(PyObject *args)
{
    size_t size;
    const char *name = sp_text_view(
        PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL, &size);
    const char *dot = memchr(name, '.', size);
    size_t top = dot ? (size_t)(dot - name) : size;
    if (top == 0 || top >= sizeof sp_agent.package ||
        memcmp(name, "__main__", top) == 0)
        return 0;
    if (sp_imports_program(name, size) < 0)
        return -1;
    memcpy(sp_agent.package, name, top);
    sp_agent.package_size = top;
    return 0;
}

/* A program that lies under the interpreter's folders is reviewed all the same. */
static void take_file(PyObject *args)
{
    size_t size;
    const char *name = sp_text_view(
        PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL, &size);
    if (size >= sizeof sp_agent.file)
        return;
    memcpy(sp_agent.file, name, size);
    sp_agent.file_size = size;
}

/* The first cpython.run_* event; start-up files of an interactive session are not it. */
static int on_run(const char *operation, PyObject *args)
{
    if (!interpreters_own(current_event) || sp_agent.program || !sp_lane_owned())
        return 0;
    if (strcmp(operation, "module") == 0 && take_package(args) < 0)
        return -1;
    if (strcmp(operation, "file") == 0)
        take_file(args);
    sp_agent.program = true;
    if (sp_lane_ready())
        __atomic_store_n(&sp_lane.ring->started, 1, __ATOMIC_RELEASE);
    sp_imports_start();
    sp_exceptions_start();
    stub->environment_restore();
    if (sp_agent.calls != SP_CALLS_OFF)
        sp_calls_start();
    return 0;
}

static int on_clear(const char *operation, PyObject *args)
{
    (void)operation, (void)args;
    PyThreadState *state = _PyThreadState_UncheckedGet();
    if (!interpreters_own(current_event))
        return 0;
    if (sp_agent.program && state && state->interp == sp_agent.main) {
        sp_imports_stop();
        sp_calls_stop();
    } else if (state && sp_agent.main) {
        leave(state->interp);
    }
    return 0;
}

/* ---- attempts on the tracer -------------------------------------------------------------------- */

static int on_introspection(const char *operation, PyObject *args)
{
    (void)operation;
    return sp_agent.program ? sp_calls_audit(current_event, args) : 0;
}

/* ---- dispatch ---------------------------------------------------------------------------------- */

static const struct watch watches[] = {
    /* life */
    {"cpython.run_command", on_run, "command"},
    {"cpython.run_file", on_run, "file"},
    {"cpython.run_module", on_run, "module"},
    {"cpython.run_stdin", on_run, "stdin"},
    {"cpython.PyInterpreterState_Clear", on_clear, ""},
    /* imports and code */
    {"import", sp_imports_event, "import"},
    {"exec", sp_imports_exec, "exec"},
    {"compile", sp_texts_compile, "compile"},
    {"ctypes.dlopen", sp_loads_ctypes, "dlopen"},
    {"ctypes.dlsym", sp_loads_ctypes, "dlsym"},
    {"ctypes.dlsym/handle", sp_loads_ctypes, "dlsym"},
    {"ctypes.call_function", sp_loads_ctypes, "call"},
    {"ctypes.string_at", sp_loads_once, "string_at"},
    {"ctypes.wstring_at", sp_loads_once, "wstring_at"},
    {"ctypes.memoryview_at", sp_loads_once, "memoryview_at"},
    {"ctypes.cdata", sp_loads_once, "cdata"},
    {"ctypes.cdata/buffer", sp_loads_once, "cdata"},
    {"ctypes.addressof", sp_loads_once, "addressof"},
    {"ctypes.PyObj_FromPtr", sp_loads_once, "PyObj_FromPtr"},
    {"ctypes.set_errno", sp_loads_once, "set_errno"},
    {"sqlite3.load_extension", sp_loads_once, "sqlite3.load_extension"},
    {"sqlite3.enable_load_extension", sp_loads_once, "sqlite3.enable_load_extension"},
    {"code.__new__", sp_loads_once, "code.__new__"},
    {"mmap.__new__", sp_loads_once, "mmap"},
    /* files */
    {"open", sp_acts_open, "read"},
    {"sqlite3.connect", sp_acts_database, "sqlite3.connect"},
    {"os.listdir", sp_acts_folder, "read"},
    {"os.scandir", sp_acts_folder, "read"},
    {"os.remove", sp_acts_path, "remove"},
    {"os.rename", sp_acts_paths, "rename"},
    {"os.link", sp_acts_paths, "link"},
    {"os.symlink", sp_acts_paths, "symlink"},
    {"os.mkdir", sp_acts_path, "mkdir"},
    {"os.rmdir", sp_acts_path, "rmdir"},
    {"os.truncate", sp_acts_truncate, "truncate"},
    {"os.chmod", sp_acts_path, "chmod"},
    {"os.chown", sp_acts_path, "chown"},
    {"os.chflags", sp_acts_path, "chflags"},
    {"os.utime", sp_acts_times, "utime"},
    {"os.setxattr", sp_acts_path, "setxattr"},
    {"os.removexattr", sp_acts_path, "removexattr"},
    {"shutil.copyfile", sp_acts_paths, "copyfile"},
    {"shutil.move", sp_acts_paths, "move"},
    {"shutil.rmtree", sp_acts_path, "rmtree"},
    /* processes */
    {"subprocess.Popen", sp_acts_program, "subprocess.Popen"},
    {"os.system", sp_acts_shell, "os.system"},
    {"os.exec", sp_acts_program, "os.exec"},
    {"os.posix_spawn", sp_acts_program, "os.posix_spawn"},
    {"os.spawn", sp_acts_program, "os.spawn"},
    {"_posixsubprocess.fork_exec", sp_acts_program, "fork_exec"},
    {"pty.spawn", sp_acts_program, "pty.spawn"},
    {"os.fork", sp_acts_process, "fork"},
    {"os.forkpty", sp_acts_process, "forkpty"},
    {"os.kill", sp_acts_process, "kill"},
    {"os.killpg", sp_acts_process, "killpg"},
    {"signal.pthread_kill", sp_acts_process, "pthread_kill"},
    {"resource.prlimit", sp_acts_process, "prlimit"},
    {"resource.setrlimit", sp_acts_process, "setrlimit"},
    /* network */
    {"socket.__new__", sp_network_socket, "socket"},
    {"socket.connect", sp_network_address, "connect"},
    {"socket.bind", sp_network_address, "bind"},
    {"socket.sendto", sp_network_address, "sendto"},
    {"socket.sendmsg", sp_network_address, "sendmsg"},
    {"socket.getaddrinfo", sp_network_lookup, "getaddrinfo"},
    {"socket.getnameinfo", sp_network_lookup, "getnameinfo"},
    {"socket.gethostbyname", sp_network_lookup, "gethostbyname"},
    {"socket.gethostbyaddr", sp_network_lookup, "gethostbyaddr"},
    /* threads, exceptions */
    {"_thread.start_new_thread", sp_acts_thread, "start"},
    {"_thread.start_joinable_thread", sp_acts_thread, "start"},
    {"sys.excepthook", sp_exceptions_hook, "excepthook"},
    {"sys.unraisablehook", sp_exceptions_unraisable, "unraisablehook"},
    /* others: what looks into the interpreter, and the rest */
    {"", on_introspection, ""},
    {"", NULL, ""},
};
#define NOTHING       (sizeof watches / sizeof watches[0] - 1)
#define INTROSPECTION (NOTHING - 1)

static size_t find_watch(const char *event)
{
    for (size_t i = 0; i < INTROSPECTION; i++)
        if (watches[i].event[0] == event[0] && strcmp(watches[i].event, event) == 0)
            return i;
    bool looks = strncmp(event, "sys.", 4) == 0 || strncmp(event, "gc.", 3) == 0;
    return looks ? INTROSPECTION : NOTHING;
}

/* By the address of the event's name, which is a literal of the interpreter's: programs
 * raise some events (builtins.id) a million times. A name that sys.audit() made up can lie
 * where another lay before; what comes of it is no worse than what it could have claimed. An
 * interpreter with a lock of its own may be here at the same time: address and place in the
 * table are one word. */
static const struct watch *recall_watch(const char *event)
{
    static uint64_t recalled[256]; /* address << 16 | place + 1; 0: none */
    uint64_t key = (uint64_t)(uintptr_t)event << 16;
    uint64_t *at = &recalled[(key * 0x9e3779b97f4a7c15u) >> 56];
    uint64_t found = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (sp_unlikely((found & ~UINT64_C(0xffff)) != key || found == 0)) {
        found = key | (find_watch(event) + 1);
        __atomic_store_n(at, found, __ATOMIC_RELAXED);
    }
    return &watches[(found & 0xffff) - 1];
}

static int handle(const struct watch *watch, const char *event, PyObject *args)
{
    current_event = event;
    sp_said_forget(); /* something else begins */
    if (sp_unlikely(!sp_agent.main)) {
        sp_agent.main = PyInterpreterState_Main();
        if (sp_agent.main && sp_lane_owned() && sp_lane_ready())
            sp_layout_publish();
    }
    PyThreadState *state = _PyThreadState_UncheckedGet();
    if (sp_unlikely(state && sp_agent.main && state->interp != sp_agent.main))
        meet(state->interp);
    if (state && sp_agent.program && sp_agent.calls != SP_CALLS_OFF)
        sp_calls_check(state);
    if (!args || !PyTuple_Check(args))
        return 0;
    return watch->act(watch->operation, args);
}

/* The entry that the interpreter keeps for our hook was made before it chose its allocator
 * (-X dev, PYTHONMALLOC=debug), which would abort when given it to free. So it is never
 * freed: we know its address, and put ourselves in front of the allocator at the very end. */
static PyMemAllocatorEx allocator_then;
static PyMemAllocatorEx allocator_last;
static void *hook_entry;

static void *catch_entry(void *context, size_t size)
{
    (void)context;
    void *memory = allocator_then.malloc(allocator_then.ctx, size);
    if (!hook_entry)
        hook_entry = memory;
    return memory;
}

static void spare_entry(void *context, void *memory)
{
    (void)context;
    if (memory != hook_entry)
        allocator_last.free(allocator_last.ctx, memory);
}

static void end(void)
{
    sp_agent.ended = true;
    if (sp_lane.ring) /* in a forked child this is its own, or none */
        sp_lane.ring->ended = SP_ENDED_FINALIZED;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &allocator_last);
    if (allocator_last.free == spare_entry)
        return;
    PyMemAllocatorEx sparing = allocator_last;
    sparing.free = spare_entry;
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &sparing);
}

static void hooks_cleared(const char *event)
{
    sp_turn_take();
    bool true_end = interpreters_own(event);
    sp_turn_leave();
    if (true_end)
        end();
}

static int hook(const char *event, PyObject *args, void *data)
{
    (void)data;
    const struct watch *watch = recall_watch(event);
    if (sp_likely(!watch->act)) {
        if (sp_unlikely(event[0] == 'c' &&
                        strcmp(event, "cpython._PySys_ClearAuditHooks") == 0))
            hooks_cleared(event);
        return 0;
    }
    if (sp_unlikely(sp_agent.ended))
        return 0;
    sp_turn_take();
    int result = handle(watch, event, args);
    sp_turn_leave();
    return result;
}

int sp_audit_install(struct sp_stub *ours)
{
    stub = ours;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &allocator_then);
    PyMemAllocatorEx catching = allocator_then;
    catching.malloc = catch_entry;
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &catching);
    int result = PySys_AddAuditHook(hook, NULL);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &allocator_then);
    return result;
}
