"""Names: looked up by the resolver where the policy grants them, while no name server is in the
program's reach; a connection to where a granted name led is granted.

The tests have hosts and a name server of their own, in a mount namespace.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import threading

import pytest
from programs import PROGRAM

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("root"),
    pytest.mark.requires("mounts"),
]

HOSTS = """\
127.0.0.1 localhost
127.0.0.11 granted.test
127.0.0.12 other.test
127.0.0.13 sub.wild.test
127.0.0.15 xn--bcher-kva.test
127.0.0.1 web.test
"""
# Tests that run side by side have one each.
SERVER = f"127.0.0.{100 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}"
ZONE = {b"dns.wild.test": "127.0.0.14", b"dns.other.test": "127.0.0.12"}


class NameServer:
    """Answers for the zone; counts what it was asked."""

    def __init__(self):
        self.asked = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((SERVER, 53))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        with contextlib.suppress(OSError):  # it says so, and wakes the thread
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._socket.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                data, peer = self._socket.recvfrom(4096)
                if not data:
                    return
                self._socket.sendto(self._answer(data), peer)

    def _answer(self, data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]])
            at += data[at] + 1
        name = b".".join(labels).lower()
        kind = struct.unpack(">H", data[at + 1 : at + 3])[0]
        self.asked.append(name)
        question = data[12 : at + 5]
        if name not in ZONE:
            return data[:2] + b"\x81\x83" + struct.pack(">4H", 1, 0, 0, 0) + question
        if kind != 1:
            return data[:2] + b"\x81\x80" + struct.pack(">4H", 1, 0, 0, 0) + question
        address = socket.inet_aton(ZONE[name])
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + address
        return data[:2] + b"\x81\x80" + struct.pack(">4H", 1, 1, 0, 0) + question + record


@pytest.fixture
def names():
    try:
        server = NameServer()
    except OSError as error:
        pytest.fail(f"port 53 of {SERVER}: {error}")
    yield server
    server.close()


@pytest.fixture
def servers():
    """One port on each of the addresses."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.11", 0)))
        port = first.getsockname()[1]
        for last in (12, 13, 14):
            stack.enter_context(socket.create_server((f"127.0.0.{last}", port)))
        yield port


@pytest.fixture
def run(tmp_path, names):
    """Run a script under rules, in a namespace with our hosts and our name server."""
    (tmp_path / "hosts").write_text(HOSTS)
    (tmp_path / "resolv.conf").write_text(
        f"nameserver {SERVER}\noptions timeout:2 attempts:1\n"
    )
    (tmp_path / "nsswitch.conf").write_text(
        "hosts: files dns\npasswd: files\ngroup: files\nservices: files\n"
    )
    mounts = "".join(
        f"mount --bind '{tmp_path}/{name}' /etc/{name} && "
        for name in ("hosts", "resolv.conf", "nsswitch.conf")
    )

    def start(script, *arguments, allow=None, deny=None, plain=False, python=None):
        (tmp_path / "script.py").write_text(script)
        text = 'extends = "trace-only"\n[network]\n'
        text += f"allow = {allow!r}\n" if allow is not None else ""
        text += f"deny = {deny!r}\n" if deny is not None else ""
        (tmp_path / "policy.toml").write_text(text)
        words = [str(python or PROGRAM.parent / "python")]
        if not plain:
            words = [str(PROGRAM), "run", "--python", *words, "--policy", "policy.toml"]
            words += ["-o", "run.sptrace", "--quiet"]
        words += [str(tmp_path / "script.py"), *map(str, arguments)]
        command = ["unshare", "--mount", "sh", "-c", mounts + 'exec "$@"', "sh", *words]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


REACH = r"""
import socket, sys
port = int(sys.argv[1])
for host in sys.argv[2:]:
    try:
        with socket.create_connection((host, port), timeout=10) as one:
            print("yes", one.getpeername()[0])
    except OSError as error:
        print("no", type(error).__name__)
"""


def test_granted_names_lead_where_they_lead(run, names, servers, sandpit, python):
    hosts = ("granted.test", "GRANTED.test", "sub.wild.test", "DNS.wild.test.")
    expected = "yes 127.0.0.11\nyes 127.0.0.11\nyes 127.0.0.13\nyes 127.0.0.14\n"
    assert run(REACH, servers, *hosts, plain=True).stdout == expected
    names.asked.clear()
    allow = [f"granted.test:{servers}", f"*.wild.test:{servers}"]
    done = run(REACH, servers, *hosts, allow=allow, python=python.path)
    assert done.stdout == expected, done.stderr
    assert set(names.asked) == {b"dns.wild.test"}
    assert sandpit.events("violation") == []
    told = sandpit.events("resolve")
    assert [e["host"] for e in told] == [h.lower().rstrip(".") for h in hosts]
    assert [e["addresses"] for e in told] == [[w.split()[1]] for w in expected.splitlines()]
    assert sandpit.verify() == 0


def test_name_that_is_not_granted_is_one_violation(run, names, servers, sandpit):
    hosts = ("dns.other.test",)
    assert run(REACH, servers, *hosts, plain=True).stdout == "yes 127.0.0.12\n"
    names.asked.clear()
    done = run(REACH, servers, *hosts, allow=["*.wild.test"])
    assert done.stdout == "no gaierror\n"
    assert names.asked == []
    (one,) = sandpit.events("violation")
    assert (one["operation"], one["host"], one["line"]) == ("resolve", "dns.other.test", 6)
    assert "--allow-net dns.other.test would allow it" in one["message"]


def test_exception_carries_the_sentence(run, sandpit):
    script = "import socket\nsocket.getaddrinfo('evil.wild.test', 80)\n"
    done = run(script, allow=["*.wild.test"], deny=["evil.wild.test"])
    assert done.returncode == 1
    (one,) = sandpit.events("violation")
    assert one["rule"] == 'network.deny "evil.wild.test"'
    assert one["message"] in done.stderr


def test_address_is_granted_once_its_name_was_looked_up(run, servers, sandpit):
    done = run(REACH, servers, "127.0.0.11", "granted.test", "127.0.0.11", "127.0.0.12",
               allow=["granted.test"])  # fmt: skip
    assert done.stdout.split("\n")[:4] == [
        "no PermissionError", "yes 127.0.0.11", "yes 127.0.0.11", "no PermissionError",
    ]  # fmt: skip
    assert {e["address"] for e in sandpit.events("violation")} == {"127.0.0.11", "127.0.0.12"}


def test_port_of_a_name_is_part_of_the_rule(run, servers):
    allow = [f"granted.test:{servers}", "sub.wild.test:1"]
    done = run(REACH, servers, "granted.test", "sub.wild.test", allow=allow)
    assert done.stdout == "yes 127.0.0.11\nno PermissionError\n"


def test_names_of_local_files_go_with_addresses(run, servers, sandpit):
    """Not granted by name, answered by a file, granted by address."""
    done = run(REACH, servers, "other.test", allow=["127.0.0.12", "*.wild.test"])
    assert done.stdout == "yes 127.0.0.12\n", done.stderr
    assert sandpit.events("violation") == []


RAW = r"""
import socket, struct, sys
query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\3dns\4wild\4test\0\0\1\0\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(5)
    try:
        one.sendto(query, (sys.argv[1], 53))
        print("answer", one.recv(512)[:2])
    except PermissionError:
        print("no")
"""


@pytest.mark.parametrize("granted", [True, False])
def test_raw_dns_is_an_address_like_any_other(run, names, sandpit, granted):
    assert run(RAW, SERVER, plain=True).stdout == "answer b'\\x00\\x07'\n"
    names.asked.clear()
    allow = ["*.wild.test", f"{SERVER}:53"] if granted else ["*.wild.test"]
    done = run(RAW, SERVER, allow=allow)
    assert done.stdout == ("answer b'\\x00\\x07'\n" if granted else "no\n"), done.stderr
    assert len(names.asked) == granted
    assert [e["port"] for e in sandpit.events("violation")] == [53] * (not granted)


def test_lookup_is_refused_with_its_server(run, names, servers, sandpit):
    done = run(REACH, servers, "dns.other.test", "other.test", deny=[f"{SERVER}:53"])
    assert done.stdout == "no gaierror\nyes 127.0.0.12\n", done.stderr
    assert names.asked == []
    (one,) = sandpit.events("violation")
    assert (one["operation"], one["host"]) == ("resolve", "dns.other.test")
    assert one["rule"] == f'network.deny "{SERVER}:53"'
    assert (one["address"], one["port"]) == (SERVER, 53)


FORMS = r"""
import socket
print(sorted(socket.getaddrinfo("granted.test", "http", type=socket.SOCK_STREAM)))
print(socket.getaddrinfo("granted.test", 80, socket.AF_INET, socket.SOCK_DGRAM,
                         flags=socket.AI_CANONNAME))
for family in (socket.AF_INET6, 77):
    try: print(socket.getaddrinfo("granted.test", 80, family))
    except socket.gaierror as error: print(error.args)
print(socket.gethostbyname("granted.test"), socket.gethostbyname_ex("granted.test"))
try: socket.getaddrinfo("granted.test", "no-such-service")
except socket.gaierror as error: print(error.args)
try: socket.getaddrinfo("absent.wild.test", 80)
except socket.gaierror as error: print(error.args)
print(socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM))
"""


def test_answers_have_the_form_of_libc(run, python):
    plain = run(FORMS, plain=True, python=python.path)
    done = run(FORMS, allow=["granted.test", "*.wild.test"], python=python.path)
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)


MANY = r"""
import socket, threading
failed = []
def work(i):
    for _ in range(5):
        if socket.gethostbyname("dns.wild.test") != "127.0.0.14":
            failed.append(i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(40)]
[t.start() for t in threads]
[t.join() for t in threads]
print(failed)
"""


def test_many_threads_look_names_up_at_once(run):
    done = run(MANY, allow=["*.wild.test"])
    assert done.stdout == "[]\n", done.stderr


CHILD = r"""
import subprocess, sys
print(subprocess.run(["getent", "ahosts", "dns.wild.test"], capture_output=True, text=True).stdout)
"""


@pytest.mark.requires("getent")
def test_programs_that_are_not_python_ask_as_well(run, names):
    plain = run(CHILD, plain=True)
    assert "127.0.0.14" in plain.stdout
    names.asked.clear()
    done = run(CHILD, allow=["*.wild.test"])
    assert "127.0.0.14" in done.stdout, done.stderr
    assert b"dns.wild.test" in names.asked


ASCII = r"""
import socket
print(socket.gethostbyname("b\u00fccher.test"), socket.gethostbyname("xn--bcher-kva.test"))
"""


def test_names_in_other_alphabets_are_the_ones_that_are_sent(run):
    done = run(ASCII, allow=["xn--bcher-kva.test"])
    assert done.stdout == "127.0.0.15 127.0.0.15\n", done.stderr


CLIENT = r"""
import sys
import requests
print(requests.get(f"http://{sys.argv[1]}:{sys.argv[2]}/", timeout=20).text)
"""


@pytest.mark.requires("requests")
def test_client_library_reaches_a_granted_name(run, listener, sandpit):
    done = run(CLIENT, "web.test", listener.port, allow=[f"web.test:{listener.port}"])
    assert done.stdout == "ok\n", done.stderr
    assert sandpit.events("violation") == []
    assert listener.arrived == 1


KILL = r"""
import os, signal
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        if b"sandpit-resolver" in open(f"/proc/{pid}/cmdline", "rb").read():
            print("found")
            os.kill(pid, signal.SIGKILL)
            print("killed")
    except PermissionError:
        print("refused")
    except OSError:
        pass
import socket
print(socket.gethostbyname("dns.wild.test"))
"""


@pytest.mark.parametrize("abi", [None, 3])
def test_resolver_is_out_of_the_programs_reach(run, monkeypatch, abi):
    if abi is not None:
        monkeypatch.setenv("SANDPIT_FORCE", f"landlock={abi}")
    done = run(KILL, allow=["*.wild.test"])
    *tried, answer = done.stdout.split()
    assert answer == "127.0.0.14", done.stderr
    assert set(tried) == {"found", "refused"}
