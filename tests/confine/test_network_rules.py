"""Rules about the network: each form, which one wins, and that nothing else is reached.

Every try is made unconfined first, where it reaches the listener.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import Counter

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

# Each argument is "kind,host"; all go to one port.
TRY = r"""
import socket, sys
port = int(sys.argv[1])
for what in sys.argv[2:]:
    kind, host = what.split(",")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    type_ = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family, type_) as one:
        try:
            if kind == "udp-sendmsg":
                one.sendmsg([b"x", b"y"], [], 0, (host, port))
            elif kind == "udp":
                one.sendto(b"x", (host, port))
            else:
                one.connect((host, port))
                if kind != "tcp":
                    one.send(b"x")
            print("yes")
        except PermissionError:
            print("no")
"""
KINDS = ("tcp", "udp", "udp-sendmsg", "udp-connect")
V4 = "127.0.0.1"


def policy(tmp_path, allow=None, deny=None, base="trace-only"):
    lines = [f'extends = "{base}"', "[network]"]
    if allow is not None:
        lines.append(f"allow = {allow!r}".replace("'", '"'))
    if deny is not None:
        lines.append(f"deny = {deny!r}".replace("'", '"'))
    path = tmp_path / "policy.toml"
    path.write_text("\n".join(lines))
    return ("--policy", str(path))


def tries(hosts, kinds=KINDS):
    return [f"{kind},{host}" for host in hosts for kind in kinds]


# (allow, deny, hosts that are reached, hosts that are not); P is the listener's port.
RULES = [
    (["127.0.0.1:P"], None, [V4], ["127.0.0.2"]),
    (["127.0.0.1"], None, [V4], ["127.0.0.2"]),
    (["127.0.0.1:1"], None, [], [V4]),
    (["127.0.0.0/8:P"], None, [V4], []),
    (["127.0.0.0/31"], None, [V4], ["127.0.0.2"]),
    (["10.0.0.0/8", "192.168.0.0/16:P"], None, [], [V4]),
    (["loopback"], None, [V4, "0.0.0.0"], []),
    (["loopback"], ["127.0.0.1:P"], [], [V4, "0.0.0.0"]),
    (["127.0.0.1:P"], ["127.0.0.0/8"], [V4], []),
    (["127.0.0.1"], ["127.0.0.1:P"], [], [V4]),
    (["127.0.0.1:P"], ["127.0.0.1:P"], [], [V4]),
    (["127.0.0.0/24"], ["127.0.0.0/8"], [V4], []),
    (["127.0.0.0/8"], ["127.0.0.0/24"], [], [V4]),
    (["*"], ["127.0.0.1"], [], [V4, "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]),
    (["*"], ["10.0.0.0/8"], [V4, "::ffff:127.0.0.1"], []),
    (None, ["loopback"], [], [V4]),
    (None, ["127.0.0.1:1"], [V4], []),
    (["::ffff:127.0.0.1"], None, [V4, "::ffff:127.0.0.1"], ["127.0.0.2"]),
    (["localhost:P"], None, [V4], []),
    (["nowhere.example:P"], None, [], [V4]),
]


@pytest.mark.parametrize(("allow", "deny", "reached", "stopped"), RULES, ids=lambda v: str(v)[:40])
def test_rule_decides_who_is_reached(
    sandpit, listener, tmp_path, allow, deny, reached, stopped
):
    def put(rules):
        return rules and [one.replace(":P", f":{listener.port}") for one in rules]

    options = policy(tmp_path, put(allow), put(deny))
    hosts = [h for h in reached + stopped if not h.startswith("127.0.0.2")]
    done = sandpit.plain(TRY, listener.port, *tries(hosts))
    assert done.stdout == "yes\n" * len(tries(hosts)), done.stderr
    assert listener.arrived == len(tries(hosts))
    before = listener.arrived
    done = sandpit.run(TRY, listener.port, *tries(reached + stopped), options=options)
    expected = ["yes"] * len(tries(reached)) + ["no"] * len(tries(stopped))
    assert done.stdout.split() == expected, done.stderr
    assert listener.arrived == before + len(tries(reached))
    told = sandpit.events("violation")
    assert sum(e.get("count", 1) for e in told) == len(tries(stopped))
    assert all(e["port"] == listener.port and e["address"] in stopped for e in told)
    assert all(e["category"] == "network" and "network." in e["rule"] for e in told)
    acts = [e for e in sandpit.events("connect") if e["port"] == listener.port]
    assert len(acts) == len(tries(reached))
    assert all("args" not in e for e in acts)  # exact
    assert sandpit.verify() == 0


@pytest.mark.requires("ipv6")
@pytest.mark.parametrize(
    ("rule", "host", "reaches"),
    [
        ("[::1]:P", "::1", True),
        ("::1", "::1", True),
        ("loopback", "::1", True),
        ("loopback", "::", True),
        ("::/8", "::1", True),
        ("127.0.0.1", "::1", False),
        ("fe80::/10", "::1", False),
    ],
)
def test_rules_hold_for_ipv6(sandpit, listener, tmp_path, rule, host, reaches):
    options = policy(tmp_path, [rule.replace(":P", f":{listener.port}")])
    assert sandpit.plain(TRY, listener.port, f"tcp,{host}").stdout == "yes\n"
    before = listener.arrived
    done = sandpit.run(TRY, listener.port, f"tcp,{host}", options=options)
    assert done.stdout == ("yes\n" if reaches else "no\n"), done.stderr
    assert listener.arrived - before == reaches
    assert len(sandpit.events("violation")) == (not reaches)


def test_failure_of_what_was_done_is_in_the_trace(sandpit, tmp_path):
    script = (
        "import socket\none = socket.socket()\none.bind(('127.0.0.1', 0))\n"
        "print(socket.socket().connect_ex(one.getsockname()))\n"
        "try: socket.socket().bind(one.getsockname())\n"
        "except OSError as error: print(error.errno)\n"
    )
    done = sandpit.run(script, options=policy(tmp_path, ["loopback"]))
    assert done.stdout == f"{errno.ECONNREFUSED}\n{errno.EADDRINUSE}\n", done.stderr
    (one,) = sandpit.events("connect")
    assert one["errno"] == errno.ECONNREFUSED
    assert [e.get("errno") for e in sandpit.events("bind")] == [None, errno.EADDRINUSE]


def test_denial_names_rule_line_and_remedy(sandpit, listener, tmp_path):
    options = policy(tmp_path, ["loopback"], [f"127.0.0.1:{listener.port}"])
    script = "import socket, sys\nsocket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    done = sandpit.run(script, listener.port, options=options)
    assert done.returncode == 1
    (one,) = sandpit.events("violation")
    assert one["rule"] == f'network.deny "127.0.0.1:{listener.port}"'
    assert one["source"].endswith("policy.toml:4")
    assert (one["operation"], one["line"]) == ("connect", 2)
    assert done.stderr.rstrip().endswith(one["message"])
    assert f"--allow-net 127.0.0.1:{listener.port} would allow it" in one["message"]


# ---- binding and listening ---------------------------------------------------------------

BIND = r"""
import socket, sys
for what in sys.argv[1:]:
    kind, host, port = what.split(",")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    type_ = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(family, type_) as one:
        try:
            if kind == "only":
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if kind != "auto":
                one.bind((host, int(port)))
            if kind != "udp":
                one.listen(1)
            print("yes")
        except PermissionError:
            print("no")
"""


@pytest.mark.parametrize(
    ("allow", "bound", "refused"),
    [
        (["loopback"], ["tcp,127.0.0.1,0", "udp,127.0.0.1,0", "tcp,127.0.0.5,0"],
         ["tcp,0.0.0.0,0", "udp,0.0.0.0,0", "auto,0.0.0.0,0"]),
        (["127.0.0.1:PORT"], ["tcp,127.0.0.1,PORT", "udp,127.0.0.1,PORT"],
         ["tcp,127.0.0.1,0", "tcp,0.0.0.0,PORT", "auto,0.0.0.0,0"]),
        (["0.0.0.0:PORT"], ["tcp,0.0.0.0,PORT", "udp,0.0.0.0,PORT"],
         ["tcp,127.0.0.1,0", "auto,0.0.0.0,0"]),
        (["0.0.0.0"], ["tcp,0.0.0.0,0", "auto,0.0.0.0,0"], ["tcp,127.0.0.1,0"]),
        (["*"], ["tcp,0.0.0.0,0", "auto,0.0.0.0,0", "udp,0.0.0.0,0"], []),
        (["[::]:PORT"], ["only,::,PORT"], ["tcp,::,PORT", "only,::1,PORT"]),
        (["[::]:PORT", "0.0.0.0:PORT"], ["tcp,::,PORT", "only,::,PORT"], ["tcp,::,0"]),
        (["unix:/nowhere"], [], ["tcp,127.0.0.1,0", "udp,127.0.0.1,0", "auto,0.0.0.0,0"]),
    ],
)  # fmt: skip
def test_rule_decides_what_is_bound(sandpit, tmp_path, allow, bound, refused):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    bound, refused = ([w.replace("PORT", port) for w in words] for words in (bound, refused))
    deny = ["10.0.0.0/8"] if allow == ["*"] else None
    options = policy(tmp_path, [rule.replace("PORT", port) for rule in allow], deny)
    done = sandpit.plain(BIND, *bound, *refused)
    assert done.stdout == "yes\n" * len(bound + refused), done.stderr
    done = sandpit.run(BIND, *bound, *refused, options=options)
    assert done.stdout.split() == ["yes"] * len(bound) + ["no"] * len(refused), done.stderr
    told = sandpit.events("violation")
    counts = Counter()
    for one in told:
        counts[one["operation"]] += one.get("count", 1)
    # A TCP port that the kernel picks is judged when it listens.
    picked = [one.startswith(("auto", "tcp", "only")) and one.endswith(",0") for one in refused]
    assert counts == Counter("listen" if one else "bind" for one in picked)
    assert all("args" not in e for e in sandpit.events("bind"))


# ---- Unix sockets ------------------------------------------------------------------------

UNIX = r"""
import socket, sys
for what in sys.argv[1:]:
    kind, path = what.split(",")
    path = "\0" + path[1:] if path[0] == "@" else path
    type_ = {"dgram": socket.SOCK_DGRAM, "pair": socket.SOCK_DGRAM}.get(kind, socket.SOCK_STREAM)
    try:
        if kind == "pair":
            one, other = socket.socketpair(socket.AF_UNIX, type_)
            one.sendto(b"x", path)
        elif kind == "dgram":
            socket.socket(socket.AF_UNIX, type_).sendto(b"x", path)
        else:
            socket.socket(socket.AF_UNIX, type_).connect(path)
        print("yes")
    except PermissionError:
        print("no")
"""


class UnixServers:
    """A stream socket and a datagram socket outside the run; how often they were reached."""

    def __init__(self, path, name):
        self.reached = 0
        self.stream, self.dgram = socket.socket(socket.AF_UNIX), socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM
        )
        self.stream.bind(f"{path}.s" if not name else f"\0{name}.s")
        self.dgram.bind(f"{path}.d" if not name else f"\0{name}.d")
        self.stream.listen(16)
        for one in (self.stream, self.dgram):
            one.setblocking(False)

    def count(self):
        for one in (self.stream, self.dgram):
            try:
                while True:
                    one.accept() if one is self.stream else one.recv(10)
                    self.reached += 1
            except BlockingIOError:
                pass
        return self.reached


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize("abi", [None, 5])
def test_rule_grants_a_unix_socket_of_another(sandpit, tmp_path, abstract, granted, abi):
    name = f"sandpit-{os.getpid()}-{tmp_path.name}" if abstract else None
    servers = UnixServers(tmp_path / "u", name)
    where = f"@{name}" if abstract else str(tmp_path / "u")
    words = [f"stream,{where}.s", f"dgram,{where}.d", f"pair,{where}.d"]
    allow = [f"unix:{where}.s", f"unix:{where}.d"] if granted else ["loopback"]
    assert sandpit.plain(UNIX, *words).stdout == "yes\n" * 3
    assert servers.count() == 3
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(UNIX, *words, options=policy(tmp_path, allow), env=env)
    assert done.stdout == ("yes\n" if granted else "no\n") * 3, done.stderr
    assert servers.count() == (6 if granted else 3)
    told = sandpit.events("violation")
    assert len(told) == (0 if granted else 3)
    for one in told:
        assert f"--allow-net unix:{one['target']} would allow it" in one["message"]


LINKS = """
import os, sys
os.symlink(sys.argv[1], sys.argv[2])
""" + UNIX.replace("sys.argv[1:]", "sys.argv[3:]")


def test_granted_name_that_becomes_a_link_grants_nothing_else(sandpit, tmp_path):
    servers = UnixServers(tmp_path / "u", None)
    name = tmp_path / "granted"
    words = (tmp_path / "u.s", name, f"stream,{name}")
    assert sandpit.plain(LINKS, *words).stdout == "yes\n"
    name.unlink()
    before = servers.count()
    options = policy(tmp_path, [f"unix:{name}"])
    assert sandpit.run(LINKS, *words, options=options).stdout == "no\n"
    assert servers.count() == before


OWN_UNIX = r"""
import os, socket, threading
server = socket.socket(socket.AF_UNIX)
server.bind("own.sock")
assert server.getsockname() == "own.sock", server.getsockname()
os.umask(0o077)
other = socket.socket(socket.AF_UNIX)
other.bind("own2.sock")
assert os.stat("own2.sock").st_mode & 0o777 == 0o700
try:
    socket.socket(socket.AF_UNIX).bind("own.sock")
except OSError as error:
    print(error.errno)
server.listen(1)
one = socket.socket(socket.AF_UNIX)
one.connect(os.path.abspath("own.sock"))
two, _ = server.accept()
# Descriptors travel, and a large message goes whole on a socket that waits.
read, write = os.pipe()
socket.send_fds(one, [b"fd"], [write])
data, fds, _, _ = socket.recv_fds(two, 10, 1)
os.write(fds[0], b"through")
print(data, os.read(read, 10))
big = os.urandom(3_000_000)
got = bytearray()
def take():
    while len(got) < len(big):
        got.extend(two.recv(1 << 16))
thread = threading.Thread(target=take)
thread.start()
print(one.sendmsg([big[:1000], big[1000:]]))
thread.join()
print(got == big)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendmsg([b"da", b"ta"])
print(b.recv(10))
"""


def test_own_unix_sockets_are_as_without(sandpit, tmp_path):
    plain = sandpit.plain(OWN_UNIX)
    for name in ("own.sock", "own2.sock"):
        (tmp_path / name).unlink()
    done = sandpit.run(OWN_UNIX, options=policy(tmp_path, ["loopback"]))
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout != ""
    assert sandpit.events("violation") == []


# ---- servers and clients of the program's own -----------------------------------------------

SERVERS = {
    "http.server": r"""
import http.server, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    print(urllib.request.urlopen(f"http://{host}:{server.server_port}/").read())
""",
    "socketserver": r"""
import socket, socketserver, threading
class Handler(socketserver.DatagramRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read().upper())
server = socketserver.UDPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.sendto(b"shout", server.server_address)
print(one.recvfrom(100)[0])
one.connect(server.server_address)
one.send(b"again")
print(one.recv(100))
""",
    "asyncio": r"""
import asyncio
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport): self.transport = transport
    def datagram_received(self, data, address): self.transport.sendto(data[::-1], address)
class Ask(asyncio.DatagramProtocol):
    def __init__(self, done): self.done = done
    def connection_made(self, transport): transport.sendto(b"abc")
    def datagram_received(self, data, address): self.done.set_result(data)
async def serve(reader, writer):
    writer.write(await reader.readline())
    writer.writelines([b"x" * 100000, b"\n"])
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"line\n")
    print(await reader.readexactly(5), len(await reader.read()))
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    done = loop.create_future()
    await loop.create_datagram_endpoint(
        lambda: Ask(done), remote_addr=transport.get_extra_info("sockname"))
    print(await asyncio.wait_for(done, 10))
asyncio.run(main())
""",
    "multiprocessing": r"""
from multiprocessing.managers import BaseManager
class Manager(BaseManager): pass
Manager.register("get", callable=lambda: [1, 2, 3])
if __name__ == "__main__":
    import multiprocessing
    multiprocessing.set_start_method("fork")
    with Manager(("127.0.0.1", 0), b"key") as manager:
        print(len(manager.get()._getvalue()))
""",
}


@pytest.mark.parametrize("name", SERVERS)
def test_own_servers_work_where_loopback_is_granted(sandpit, tmp_path, python, name):
    granted = policy(tmp_path, ["loopback"], base="no-network")
    options = (*granted, "--python", str(python.path))
    plain = sandpit.plain(SERVERS[name])
    done = sandpit.run(SERVERS[name], options=options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == plain.stdout != ""
    assert sandpit.events("violation") == []
    assert sandpit.verify() == 0


def test_module_list_is_lifted_by_any_grant(sandpit, tmp_path):
    script = "import urllib.request, ftplib\nprint('in')\n"
    assert sandpit.run(script, options=("--policy", "no-network")).returncode == 1
    options = policy(tmp_path, ["127.0.0.1:9"], base="no-network")
    assert sandpit.run(script, options=options).stdout == "in\n"


def test_without_pidfd_getfd_tcp_works_and_datagrams_are_refused(
    sandpit, listener, tmp_path
):
    env = {"SANDPIT_FORCE": "pidfd_getfd=off"}
    options = policy(tmp_path, [f"127.0.0.1:{listener.port}"])
    done = sandpit.run(
        TRY, listener.port, *tries([V4]), "tcp,127.0.0.2", options=options, env=env
    )
    assert done.stdout.split() == ["yes", "no", "no", "no", "no"], done.stderr
    assert (listener.connections, listener.datagrams) == (1, 0)
    options = policy(tmp_path, ["loopback"])
    done = sandpit.run(SERVERS["http.server"], options=options, env=env)
    assert done.stdout == "b'hello'\n" * 2, done.stderr
    again = (
        "import errno, socket, sys\none = socket.socket()\none.setblocking(False)\n"
        "for _ in range(2): print(errno.errorcode[one.connect_ex(('127.0.0.1', int(sys.argv[1])))])\n"
    )
    done = sandpit.run(again, listener.port, options=options, env=env)
    assert done.stdout == "EINPROGRESS\nEISCONN\n", done.stderr


NODE = """
import socket
try:
    socket.socket(socket.AF_UNIX).bind("node")
    print("bound")
except OSError as error:
    print(type(error).__name__, error)
"""


def test_a_socket_that_nobody_can_act_on_is_not_bound(sandpit, tmp_path):
    """Under a glob the supervisor makes the node, which it can by the socket itself only."""
    (tmp_path / "glob.toml").write_text('[fs]\ndeny_write = ["**/secret"]\n')
    options = ("--policy", str(tmp_path / "glob.toml"))
    node = sandpit.folder / "node"
    assert sandpit.plain(NODE).stdout == "bound\n"
    node.unlink()
    assert sandpit.run(NODE, options=options).stdout == "bound\n"
    node.unlink()
    done = sandpit.run(NODE, options=options, env={"SANDPIT_FORCE": "pidfd_getfd=off"})
    assert done.stdout.startswith("PermissionError"), done.stderr
    assert not node.exists()
    [told] = sandpit.events("violation")
    assert told["operation"] == "bind"
    assert told["target"].endswith("node")
    assert told["message"] in done.stdout


def test_observed_rules_deny_nothing_and_tell(sandpit, listener, tmp_path):
    options = (*policy(tmp_path, ["127.0.0.2"]), "--observe")
    done = sandpit.run(TRY, listener.port, *tries([V4]), options=options)
    assert done.stdout == "yes\n" * 4, done.stderr
    assert listener.arrived == 4
    told = sandpit.events("violation")
    assert {e["action"] for e in told} == {"observe"}
    assert sum(e.get("count", 1) for e in told) >= 3
