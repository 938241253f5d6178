"""Observing: what the policy's rules would deny is recorded and done."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

POLICY = """
extends = "no-network"
[imports]
deny = ["colorsys"]
"""
# One statement is told once, as its import event is.
IMPORTS = "import colorsys, ftplib\nfor i in range(3):\n    import colorsys\nprint('in')\n"


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "watch.toml"
    path.write_text(POLICY)
    return ("--policy", str(path))


def test_rule_denies_where_it_is_enforced(sandpit, policy):
    done = sandpit.run(IMPORTS, options=policy)
    assert done.returncode == 1
    assert [e["action"] for e in sandpit.events("violation")] == ["deny"]


@pytest.mark.parametrize("way", ["option", "policy"])
def test_denied_import_is_done_and_recorded(sandpit, policy, tmp_path, way):
    if way == "policy":
        (tmp_path / "watch.toml").write_text('mode = "observe"\n' + POLICY)
    options = (*policy, "--observe") if way == "option" else policy
    done = sandpit.run(IMPORTS, options=options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\n", "")
    told = sandpit.events("violation")
    assert [(e["target"], e["line"], e["action"]) for e in told] == [
        ("colorsys", 1, "observe"),
        ("ftplib", 1, "observe"),
        ("colorsys", 3, "observe"),
    ]
    assert all(" would be denied by policy " in e["message"] for e in told)
    assert told[0]["message"].endswith(told[0]["hint"])
    # The acts themselves are there too.
    imported = [e["module"] for e in sandpit.events("import")]
    assert imported.count("colorsys") >= 2
    assert "ftplib" in imported
    assert sandpit.verify() == 0


def test_what_no_policy_allows_is_denied_all_the_same(sandpit, policy, tmp_path):
    script = (
        "import os\nopen('f', 'w').close()\n"
        "try: os.chmod('f', 0o4755)\nexcept PermissionError: print('no')\n"
    )
    done = sandpit.run(script, options=(*policy, "--observe"))
    assert (done.returncode, done.stdout) == (0, "no\n"), done.stderr
    assert (tmp_path / "f").stat().st_mode & 0o4000 == 0
    (one,) = sandpit.events("violation")
    assert (one["operation"], one["action"]) == ("chmod", "deny")
    assert "would be" not in one["message"]


def test_observed_violation_stops_nothing(sandpit, policy, tmp_path):
    (tmp_path / "watch.toml").write_text(
        'mode = "observe"\non_violation = "stop"\n' + POLICY
    )
    done = sandpit.run(IMPORTS, options=policy)
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr
    # What is denied under every policy does.
    script = "import os\nopen('f', 'w').close()\nos.chmod('f', 0o4755)\n"
    assert sandpit.run(script, options=policy).returncode == 126


def test_observed_violations_can_fail_a_run(sandpit, policy):
    done = sandpit.run(IMPORTS, options=(*policy, "--observe", "--fail-on-violation"))
    assert (done.returncode, done.stdout) == (126, "in\n")


def test_result_tells_of_observed_violations(sandpit, policy):
    done = sandpit.run(IMPORTS, options=(*policy, "--observe", "--json"))
    result = json.loads(done.stdout)
    assert (result["status"], result["stdout"]) == ("ok", "in\n")
    assert {v["action"] for v in result["violations"]} == {"observe"}
    assert [(v["target"], v["count"]) for v in result["violations"]] == [
        ("colorsys", 1),
        ("ftplib", 1),
        ("colorsys", 1),
    ]


# ---- files ------------------------------------------------------------------------------

FILES = """
extends = "no-network"
mode = "observe"
[fs]
allow_write = ["{work}", "{tmp}"]
deny_read = ["OUT/secret", "OUT/hidden"]
"""
CHANGES = r"""
import os, shutil, sys
out = sys.argv[1]
open(out + "/new", "w").write("x")
open(out + "/old", "a").write("y")
os.mkdir(out + "/made")
os.rename(out + "/new", out + "/made/moved")
os.chmod(out + "/old", 0o640)
os.utime(out + "/old", (1, 2))
os.truncate(out + "/old", 2)
os.symlink("old", out + "/link")
os.link(out + "/old", out + "/second")
os.remove(out + "/gone")
os.rmdir(out + "/empty")
open(out + "/old", "r+").close()
with open(out + "/secret") as f:
    print(f.read())
print(os.listdir(out + "/hidden"))
open("own", "w").close()
for i in range(3):
    open(out + "/again", "w").close()
"""


def make_outside(folder):
    (folder / "hidden").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "hidden" / "x").write_text("x")
    for name in ("old", "gone", "secret"):
        (folder / name).write_text(name)
    return folder


def tree(folder):
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_text() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_changes_of_files_are_done_and_recorded(sandpit, tmp_path, tmp_path_factory):
    plain = make_outside(tmp_path_factory.mktemp("plain") / "out")
    out = make_outside(tmp_path_factory.mktemp("observed") / "out")
    expected = sandpit.plain(CHANGES, plain)
    assert expected.returncode == 0, expected.stderr
    (tmp_path / "files.toml").write_text(FILES.replace("OUT", str(out)))
    options = ("--policy", str(tmp_path / "files.toml"))
    done = sandpit.run(CHANGES, out, options=options)
    assert (done.returncode, done.stdout) == (0, expected.stdout), done.stderr
    assert tree(out) == tree(plain)

    events = sandpit.events()
    told = [e for e in events if e["kind"] == "violation"]
    assert {e["action"] for e in told} == {"observe"}
    first = {(e["operation"], e["target"][len(str(out)) :]) for e in told}
    assert first >= {
        ("create", "/new"),
        ("write", "/old"),
        ("mkdir", "/made"),
        ("rename", "/new"),
        ("chmod", "/old"),
        ("utime", "/old"),
        ("truncate", "/old"),
        ("symlink", "/link"),
        ("link", "/old"),
        ("remove", "/gone"),
        ("rmdir", "/empty"),
        ("read", "/secret"),
        ("read", "/hidden"),
    }
    assert all(e["target"].startswith(f"{out}/") for e in told)
    # Each with the line that did it, and beside it the act's own event with the same one.
    assert all(e["file"].endswith("script.py") for e in told)
    for one in (e for e in told if "of" not in e):
        acts = [
            e
            for e in events
            if e["kind"] in ("open", "file")
            and one["target"] in (e.get("path"), e.get("target"))
            and e.get("at") == one["at"]
        ]
        assert acts, one
        assert not any("errno" in e or e.get("origin") == "native" for e in acts)
    again = [e for e in told if e["target"].endswith("/again")]
    assert [e.get("count") for e in again if "of" in e] in ([2], [1])
    assert not any(e["target"].endswith("/own") for e in told)
    assert sandpit.verify() == 0


def test_files_rule_denies_where_it_is_enforced(sandpit, tmp_path, tmp_path_factory):
    out = make_outside(tmp_path_factory.mktemp("enforced") / "out")
    before = tree(out)
    policy = FILES.replace("OUT", str(out)).replace('mode = "observe"', "")
    (tmp_path / "files.toml").write_text(policy)
    done = sandpit.run(CHANGES, out, options=("--policy", str(tmp_path / "files.toml")))
    assert done.returncode == 1
    assert tree(out) == before


def test_bytecode_is_kept_where_that_is_only_observed(sandpit, tmp_path, tmp_path_factory):
    out = make_outside(tmp_path_factory.mktemp("library") / "out")
    (out / "helper.py").write_text("x = 1\n")
    script = f"import sys\nsys.path.insert(0, {str(out)!r})\nimport helper\n"
    policy = tmp_path / "files.toml"
    policy.write_text(FILES.replace("OUT", str(out)).replace('mode = "observe"', ""))
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    for options, kept in (((), False), (("--observe",), True)):
        done = sandpit.run(script, options=("--policy", str(policy), *options), env=env)
        assert done.returncode == 0, done.stderr
        assert (out / "__pycache__").exists() == kept
        assert sandpit.events("violation") == []


# ---- processes --------------------------------------------------------------------------

PROGRAMS = r"""
import ctypes, os, subprocess, sys
for i in range(2):
    subprocess.run(["/bin/echo", "one"])
os.system("echo two")
print(subprocess.run(["env", "echo", "three"], capture_output=True).stdout)
pid = os.posix_spawn("/bin/echo", ["echo", "four"], {})
os.waitpid(pid, 0)
if os.fork() == 0:
    os.execv("/bin/echo", ["echo", "five"])
os.wait()
"""


@pytest.mark.parametrize(
    "rules", ['allow = ["{python}"]', "fork = false", 'deny = ["*"]\nfork = false']
)
def test_programs_are_started_and_recorded(sandpit, tmp_path, rules):
    policy = f'extends = "trace-only"\nmode = "observe"\n[process]\n{rules}\n'
    (tmp_path / "run.toml").write_text(policy)
    options = ("--policy", str(tmp_path / "run.toml"))
    expected = sandpit.plain(PROGRAMS)
    assert expected.returncode == 0, expected.stderr
    done = sandpit.run(PROGRAMS, options=options)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == sorted(expected.stdout.split())
    told = sandpit.events("violation")
    assert {e["action"] for e in told} == {"observe"}
    operations = {e["operation"] for e in told}
    assert ("fork" in operations) == ("fork" in rules)
    assert ("exec" in operations) == (rules != "fork = false")
    if "exec" in operations:
        started = {os.path.basename(e["path"]) for e in sandpit.events("exec")}
        assert {os.path.basename(e["target"]) for e in told if e["operation"] == "exec"}
        assert {"echo", "env"} <= started
    assert sandpit.verify() == 0


# ---- network ----------------------------------------------------------------------------

CONNECTS = r"""
import ctypes, socket, sys
port = int(sys.argv[1])
for i in range(3):
    socket.create_connection(("127.0.0.1", port)).close()
s = socket.socket()
a = b"\x02\0" + port.to_bytes(2, "big") + b"\x7f\0\0\1" + bytes(8)
assert ctypes.CDLL(None).connect(s.fileno(), a, len(a)) == 0
server = socket.create_server(("127.0.0.1", 0))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.sendto(b"x", ("127.0.0.1", port))
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
socket.getaddrinfo("localhost", 80)
left, right = socket.socketpair()
print("done")
"""


@pytest.mark.parametrize("rules", ['deny = ["*"]', 'allow = ["192.0.2.1:443"]'])
def test_connections_are_made_and_recorded(sandpit, listener, tmp_path, rules):
    policy = f'extends = "trace-only"\nmode = "observe"\n[network]\n{rules}\n'
    (tmp_path / "net.toml").write_text(policy)
    arrived = listener.arrived
    options = ("--policy", str(tmp_path / "net.toml"))
    done = sandpit.run(CONNECTS, listener.port, options=options)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert listener.arrived >= arrived + 4
    told = sandpit.events("violation")
    assert {e["action"] for e in told} == {"observe"}
    target = f"127.0.0.1:{listener.port}"
    seen = {(e["operation"], e["target"]) for e in told}
    assert seen >= {("connect", target), ("send", target), ("socket", "netlink raw")}
    assert "bind" in {e["operation"] for e in told}
    # A local file had the answer: nothing would have been denied.
    assert "resolve" not in {e["operation"] for e in told}
    connects = [e for e in sandpit.events("connect") if e.get("port") == listener.port]
    assert len([e for e in connects if e["op"] == "connect"]) == 4
    assert sum(e.get("count", 1) for e in told if e["operation"] == "connect") == 4
    enforced = policy.replace('mode = "observe"', "")
    (tmp_path / "net.toml").write_text(enforced)
    arrived = listener.arrived
    assert sandpit.run(CONNECTS, listener.port, options=options).returncode == 1
    assert listener.arrived == arrived


# ---- all at once ------------------------------------------------------------------------

EVERYTHING = r"""
import ctypes, hashlib, mmap, multiprocessing, os, shutil, socket, sqlite3, ssl
import subprocess, sys, tempfile, threading
def work(queue):
    queue.put(os.getppid() > 1)
if __name__ == "__main__":
    print(ctypes.CDLL(None).getpid() == os.getpid())
    print(subprocess.run(["echo", "x"], capture_output=True).stdout)
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    print(len(mmap.mmap(-1, 4096, prot=rights)))
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    folder = tempfile.mkdtemp(dir=sys.argv[1])
    database = sqlite3.connect(folder + "/x.db")
    database.execute("create table t (x)")
    database.commit()
    database.close()
    print(os.listdir(folder))
    shutil.rmtree(folder)
    print(len(open("/etc/passwd").read()) > 0)
"""
BUILT_IN = ("trace-only", "no-network", "no-process", "read-only", "default", "strict")


@pytest.mark.parametrize("policy", BUILT_IN)
def test_built_in_policy_that_is_observed_changes_nothing(
    sandpit, tmp_path_factory, policy
):
    out = tmp_path_factory.mktemp("out")
    plain = sandpit.plain(EVERYTHING, out)
    assert plain.returncode == 0, plain.stderr
    done = sandpit.run(EVERYTHING, out, options=("--policy", policy, "--observe"))
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, "")
    told = sandpit.events("violation")
    assert {e["action"] for e in told} <= {"observe"}
    assert (told == []) == (policy == "trace-only")
    assert list(out.iterdir()) == []
    assert sandpit.verify() == 0
