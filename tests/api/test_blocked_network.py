"""What would reach the network is stopped by each way of trying, and recorded.

Each program is run unconfined first: there it reaches the listener, which proves that
the attempt is a real one.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest
import sandpit
from abilities import require
from plain import run_plain

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]


@dataclass(frozen=True)
class Try:
    """A way to reach a port, and what its violation must say."""

    name: str
    code: str
    operation: str
    address: str = "127.0.0.1"
    needs: tuple[str, ...] = ()
    exit_code: int = 1


SEEN = [
    Try(
        "create_connection",
        "import socket\nsocket.create_connection(('127.0.0.1', {port}))\n",
        "connect",
    ),
    Try(
        "create_connection_ipv6",
        "import socket\nsocket.create_connection(('::1', {port}))\n",
        "connect",
        "::1",
        ("ipv6",),
    ),
    Try(
        "connect",
        "import socket\nsocket.socket().connect(('127.0.0.1', {port}))\n",
        "connect",
    ),
    Try(
        "connect_ex",
        "import socket, sys\n"
        "sys.exit(socket.socket().connect_ex(('127.0.0.1', {port})) != 0)\n",
        "connect",
    ),
    Try(
        "http_client_of_a_library",
        "import urllib.robotparser\n"
        "urllib.robotparser.RobotFileParser('http://127.0.0.1:{port}/x').read()\n",
        "connect",
    ),
    Try(
        "asyncio",
        "import asyncio\n"
        "async def main():\n"
        "    _, writer = await asyncio.open_connection('127.0.0.1', {port})\n"
        "    writer.close()\n"
        "asyncio.run(main())\n",
        "connect",
    ),
    Try(
        "udp",
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', ('127.0.0.1', {port}))\n",
        "send",
    ),
    Try(
        "udp_connected",
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.connect(('127.0.0.1', {port}))\ns.send(b'x')\n",
        "connect",
    ),
    Try(
        "low_level",
        "import _socket\n_socket.socket().connect(('127.0.0.1', {port}))\n",
        "connect",
    ),
    Try(
        "thread",
        "import socket, sys, threading\n"
        "done = []\n"
        "def work():\n"
        "    socket.create_connection(('127.0.0.1', {port}))\n"
        "    done.append(1)\n"
        "one = threading.Thread(target=work)\n"
        "one.start()\none.join()\nsys.exit(not done)\n",
        "connect",
    ),
    Try(
        "child",
        "import subprocess, sys\n"
        "code = 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', code]).returncode)\n",
        "connect",
    ),
]

SOCKADDR = (
    "import ctypes, struct, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "where = struct.pack('=HH4s8x', 2, int.from_bytes(\n"
    "    ({port}).to_bytes(2, 'big'), sys.byteorder), bytes([127, 0, 0, 1]))\n"
)
NATIVE = [
    Try(
        "ctypes",
        SOCKADDR + "fd = libc.socket(2, 1, 0)\n"
        "sys.exit(libc.connect(fd, where, 16) != 0)\n",
        "connect",
    ),
    Try(
        "raw_syscall",
        SOCKADDR + "import platform\n"
        "socket, connect = "
        "{{'x86_64': (41, 42), 'aarch64': (198, 203)}}[platform.machine()]\n"
        "fd = libc.syscall(socket, 2, 1, 0)\n"
        "sys.exit(libc.syscall(connect, fd, where, 16) != 0)\n",
        "connect",
    ),
    Try(
        "ctypes_udp",
        SOCKADDR + "fd = libc.socket(2, 2, 0)\n"
        "sys.exit(libc.sendto(fd, b'x', 1, 0, where, 16) != 1)\n",
        "send",
    ),
    *(
        Try(
            f"ctypes_{call}",
            SOCKADDR + "fd = libc.socket(2, 2, 0)\n"
            "class Part(ctypes.Structure):\n"
            "    _fields_ = [('at', ctypes.c_char_p), ('size', ctypes.c_size_t)]\n"
            "class Message(ctypes.Structure):\n"
            "    _fields_ = [('name', ctypes.c_char_p), ('name_size', ctypes.c_uint),\n"
            "                ('parts', ctypes.POINTER(Part)), ('count', ctypes.c_size_t),\n"
            "                ('control', ctypes.c_void_p), ('size', ctypes.c_size_t),\n"
            "                ('flags', ctypes.c_int), ('sent', ctypes.c_uint)]\n"
            "one = Message(where, 16, ctypes.pointer(Part(b'x', 1)), 1)\n"
            f"sys.exit(libc.{call}(fd, ctypes.byref(one), {flags}) != 1)\n",
            "send",
        )
        for call, flags in (("sendmsg", "0"), ("sendmmsg", "1, 0"))
    ),
    Try(
        "bash",
        "import subprocess, sys\n"
        "sys.exit(subprocess.run(['bash', '-c',\n"
        "    'exec 3<>/dev/tcp/127.0.0.1/{port}'], stderr=2).returncode != 0)\n",
        "connect",
        needs=("bash",),
    ),
]

EXTENSION = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <sys/socket.h>

static PyObject *knock(PyObject *self, PyObject *args)
{
    int port;
    if (!PyArg_ParseTuple(args, "i", &port))
        return NULL;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return PyLong_FromLong(connect(fd, (struct sockaddr *)&where, sizeof(where)));
}

static PyMethodDef methods[] = {{"knock", knock, METH_VARARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "knocker", "", 0, methods};
PyMODINIT_FUNC PyInit_knocker(void)
{
    return PyModule_Create(&module);
}
"""


def control(python, code, listener, tmp_path):
    """Show that the program reaches the listener when nothing confines it."""
    before = listener.arrived
    (tmp_path / "main.py").write_text(code)
    done = run_plain(python, ["main.py"], cwd=tmp_path)
    assert done.exit_code == 0, done.stderr.decode()
    assert listener.arrived > before


def check_denied(result, one, listener, arrived):
    """Check that nothing came, and that one violation says what was tried."""
    assert listener.arrived == arrived
    assert result.exit_code == one.exit_code, result.stderr
    (violation,) = result.violations
    assert violation.category == "network"
    assert violation.operation == one.operation
    assert violation.details["address"] == one.address
    assert violation.details["port"] == listener.port
    assert str(listener.port) in violation.target
    assert violation.rule
    assert violation.message
    assert violation.hint
    return violation


@pytest.mark.parametrize("one", SEEN, ids=[one.name for one in SEEN])
def test_connection_from_python_is_denied(python, one, listener, tmp_path):
    for need in one.needs:
        require(need)
    code = one.code.format(port=listener.port)
    control(python, code, listener, tmp_path)
    arrived = listener.arrived
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    violation = check_denied(result, one, listener, arrived)
    if one.name != "child":
        assert violation.file.endswith("main.py")
        assert violation.line is not None


@pytest.mark.parametrize("one", NATIVE, ids=[one.name for one in NATIVE])
def test_connection_past_python_is_denied_by_the_kernel(
    python, one, listener, tmp_path
):
    for need in one.needs:
        require(need)
    code = one.code.format(port=listener.port)
    control(python, code, listener, tmp_path)
    arrived = listener.arrived
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    violation = check_denied(result, one, listener, arrived)
    assert violation.layer == "kernel"
    assert violation.details["origin"] == "native"


@pytest.mark.requires("cc")
def test_connection_by_an_extension_module_is_denied(python, listener, tmp_path):
    (tmp_path / "knocker.c").write_text(EXTENSION)
    built = subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            *f"-o knocker.so knocker.c -I{python.include}".split(),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        require("cc", f"cannot build for {python.label}: {built.stderr[:200]}")
    code = f"import knocker, sys\nsys.exit(knocker.knock({listener.port}) != 0)\n"
    control(python, code, listener, tmp_path)
    arrived = listener.arrived
    library = (tmp_path / "knocker.so").read_bytes()
    result = sandpit.run_string(
        code,
        files={"knocker.so": library},
        policy="no-network",
        python=python.path,
    )
    one = Try("extension", "", "connect")
    violation = check_denied(result, one, listener, arrived)
    assert violation.layer == "kernel"
    assert violation.details["origin"] == "native"
    assert violation.line == 2


def test_urlopen_is_one_violation(python, listener, tmp_path):
    code = (
        "from urllib.request import urlopen\n"
        f"print(urlopen('http://127.0.0.1:{listener.port}/').read())\n"
    )
    control(python, code, listener, tmp_path)
    arrived = listener.arrived
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert listener.arrived == arrived
    assert result.exit_code == 1
    assert len(result.violations) == 1


def test_name_lookup_is_one_violation(python):
    code = "import socket\nsocket.getaddrinfo('example.com', 80)\n"
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert result.exit_code == 1
    (one,) = result.violations
    assert (one.category, one.operation) == ("network", "resolve")
    assert "example.com" in one.target
    assert one.line == 2


def test_name_lookup_that_a_local_file_answers_is_none(python, tmp_path):
    code = (
        "import socket\n"
        "found = socket.getaddrinfo('localhost', 80, socket.AF_INET)\n"
        "print(found[0][4])\n"
    )
    (tmp_path / "main.py").write_text(code)
    plain = run_plain(python, ["main.py"], cwd=tmp_path)
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert result.stdout_bytes == plain.stdout
    assert (result.exit_code, result.violations) == (0, ())


def test_denial_says_what_python_programs_expect(python, listener):
    code = (
        "import errno, socket\n"
        "try:\n"
        f"    socket.create_connection(('127.0.0.1', {listener.port}))\n"
        "except PermissionError as error:\n"
        "    print(errno.errorcode[error.errno])\n"
        "    print(error)\n"
    )
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert result.exit_code == 0
    name, text = result.stdout.rstrip("\n").split("\n", 1)
    assert name in ("EACCES", "EPERM")
    assert result.violations[0].message in text


def test_trace_only_lets_connections_through(python, listener):
    code = f"import socket\nsocket.create_connection(('127.0.0.1', {listener.port}))\n"
    result = sandpit.run_string(code, policy="trace-only", python=python.path)
    assert (result.exit_code, result.violations) == (0, ())
    assert listener.arrived == 1
    connects = [event for event in result.trace if event["kind"] == "connect"]
    assert connects[0]["address"] == "127.0.0.1"
    assert connects[0]["port"] == listener.port


def test_listening_is_denied_and_sockets_within_the_run_work(python, tmp_path):
    code = (
        "import os, socket\n"
        "one, two = socket.socketpair()\n"
        "one.send(b'pair')\nprint(two.recv(9))\n"
        "server = socket.socket(socket.AF_UNIX)\n"
        "server.bind('own.sock')\nserver.listen()\n"
        "client = socket.socket(socket.AF_UNIX)\nclient.connect('own.sock')\n"
        "client.send(b'unix')\nprint(server.accept()[0].recv(9))\n"
    )
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert result.stdout == "b'pair'\nb'unix'\n", result.stderr
    assert result.violations == ()
    bound = "import socket\nsocket.create_server(('127.0.0.1', 0))\n"
    result = sandpit.run_string(bound, policy="no-network", python=python.path)
    assert result.exit_code == 1
    (one,) = result.violations
    assert (one.category, one.operation) == ("network", "bind")
