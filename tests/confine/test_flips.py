"""A path, or an argument, that changes in memory while calls take it, by another thread or in a
page that is shared. What is denied is not touched, seen from outside;
what was denied, or done by the supervisor, is recorded exactly; what was left to the kernel says so.

SANDPIT_RACE_TRIES sets how often each is tried (`make test-oracle`: 20,000 times).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import abilities
import pytest
from abilities import require

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("cc"),
]

TRIES = int(os.environ.get("SANDPIT_RACE_TRIES", "200"))
SOURCE = Path(__file__).parents[1] / "support/flips.c"
START = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
SECRET = "secret " * 3

# What the call is for: what has to be there for it, and what events call it.
WAYS = {
    "read": ("file", "read"),
    "write": ("file", "write"),
    "open-truncate": ("file", "write"),
    "create": ("nothing", "create"),
    "unlink": ("file", "remove"),
    "rename": ("file", "rename"),
    "rename-over": ("file", "rename"),
    "link": ("file", "link"),
    "mkdir": ("nothing", "mkdir"),
    "symlink": ("nothing", "symlink"),
    "chmod": ("file", "chmod"),
    "chown": ("file", "chown"),
    "utime": ("file", "utime"),
    "setxattr": ("file", "setxattr"),
    "truncate": ("file", "truncate"),
}
# Done by the supervisor wherever they are judged: the kernel has no right for them.
ALWAYS_BROKERED = {"chmod", "chown", "utime", "setxattr"}


# Tried by `make test` too; the others in full only.
SAMPLE = ("read", "write", "create", "unlink", "rename", "chmod", "truncate")
SAMPLED = [
    way if way in SAMPLE else pytest.param(way, marks=pytest.mark.oracle) for way in WAYS
]


@pytest.fixture(scope="module")
def flips(tmp_path_factory):
    program = tmp_path_factory.mktemp("flips") / "flips"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, SOURCE], check=True)
    return program


class Place:
    """A granted and a denied path, alike but for one character, with the same beside them."""

    def __init__(self, folder: Path, layout: str) -> None:
        root = folder / "places"
        (root / "a").mkdir(parents=True)
        (root / "b").mkdir()
        self.root = root
        self.brokered = layout == "file"
        self.script = folder / "script.py"
        if self.brokered:  # a denied file in an allowed folder: the kernel cannot tell them apart
            self.granted, self.denied = root / "a/x-a", root / "a/x-b"
        else:
            self.granted, self.denied = root / "a/file", root / "b/file"

    def fill(self, what: str) -> None:
        for path in (self.granted, self.denied):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)
        if what == "file":
            self.granted.write_text("granted")
            self.denied.write_text(SECRET)
            os.chmod(self.denied, 0o644)
            os.utime(self.denied, (500, 500))

    def untouched(self, what: str) -> bool:
        """Tell whether nobody did anything to what is denied."""
        if what == "nothing":
            return not os.path.lexists(self.denied)
        if not self.denied.exists():
            return False
        st = os.lstat(self.denied)
        return (
            self.denied.read_text() == SECRET
            and (st.st_mode & 0o7777, st.st_mtime, st.st_nlink) == (0o644, 500, 1)
            and os.listxattr(self.denied) == []
        )

    def policy(self, way: str, *programs: Path) -> tuple[str, ...]:
        """Allow one folder; where the denied path lies in it, that is denied."""
        what = "read" if way == "read" else "write"
        allowed = [str(self.granted.parent)]
        if way == "read":
            allowed += ["{python}", str(self.script), *map(str, programs)]
        path = self.root.parent / "policy.toml"
        text = f"[fs]\nallow_{what} = {json.dumps(allowed)}\n"
        if self.brokered:
            # Files are granted for reading one by one, unless any could be meant.
            denied = f"**/{self.denied.name}" if way == "read" else str(self.denied)
            text += f"deny_{what} = {json.dumps([denied])}\n"
        path.write_text(text)
        granted = [word for one in programs for word in ("--allow-run", str(one))]
        return ("--policy", str(path), "--calls", "off", *granted)


def counted(events, path):
    return sum(e.get("count", 1) for e in events if e["target"] == str(path))


@pytest.mark.parametrize("layout", ["file", "folder"])
@pytest.mark.parametrize("way", SAMPLED)
def test_changing_path_leads_to_nothing_denied(sandpit, flips, tmp_path, way, layout):
    what, op = WAYS[way]
    place = Place(tmp_path, layout)
    words = (flips, way, "thread", 300, place.granted, place.denied)
    place.fill(what)
    plain = sandpit.plain(START, *words)
    assert plain.returncode == 0, plain.stderr
    if way == "setxattr" and place.untouched(what):
        require("user-xattr", "the file system keeps no attributes of users")
    assert not place.untouched(what) or way in ("read", "chown", "link")
    if way == "read":
        assert int(plain.stdout.split()[3]) > 0

    place.fill(what)
    words = (flips, way, "thread", TRIES, place.granted, place.denied)
    done = sandpit.run(START, *words, options=place.policy(way, flips), timeout=1200)
    assert done.returncode == 0, done.stderr
    yes, no, other, strange, raced = map(int, done.stdout.split())
    if not place.brokered and way.startswith(("link", "rename")):
        no, other = no + other, 0  # the kernel says EXDEV where rights differ
    assert (strange, other) == (0, 0)
    assert yes > 0 and no > 0 and raced > 0
    assert place.untouched(what)

    told = sandpit.events("violation")
    assert {(e["operation"], e["target"]) for e in told} == {(op, str(place.denied))}
    denials = counted(told, place.denied)
    acts = [
        e for e in sandpit.events("open") + sandpit.events("file")
        if e["path"] == str(place.granted) or e.get("to") == str(place.granted)
    ]  # fmt: skip
    observed = [e for e in acts if e.get("args") == "observed"]
    exact = [e for e in acts if "args" not in e and "errno" not in e]
    # Below ABI 3 Landlock does not guard it.
    truncates = "truncate" in way and abilities.lack("landlock>=3") is not None
    if place.brokered or way in ALWAYS_BROKERED or truncates:
        assert denials == no
        assert not observed
        if way in ("read", "write", "open-truncate", "chmod", "chown", "utime", "truncate",
                   "setxattr", "rename-over"):  # fmt: skip
            assert len(exact) == yes
    else:
        # Each try is told once; the kernel refused what became another path meanwhile.
        assert denials <= no
        assert denials + len(observed) >= yes + no
    assert sandpit.verify() == 0


@pytest.mark.parametrize("way", ["write", "chmod", "unlink"])
def test_changing_path_in_a_shared_page(sandpit, flips, tmp_path, way):
    what, op = WAYS[way]
    place = Place(tmp_path, "file")
    place.fill(what)
    words = (flips, way, "shared", 300, place.granted, place.denied)
    assert sandpit.plain(START, *words).returncode == 0
    assert not place.untouched(what)
    place.fill(what)
    words = (flips, way, "shared", TRIES, place.granted, place.denied)
    done = sandpit.run(START, *words, options=place.policy(way), timeout=1200)
    assert done.returncode == 0, done.stderr
    yes, no, other, strange, raced = map(int, done.stdout.split())
    assert (strange, other) == (0, 0)
    assert yes > 0 and no > 0 and raced > 0
    assert place.untouched(what)
    told = sandpit.events("violation")
    assert {(e["operation"], e["target"]) for e in told} == {(op, str(place.denied))}
    assert counted(told, place.denied) == no


def test_no_process_shares_its_makers_memory(sandpit, flips, tmp_path):
    """One that is no thread and does not wait, as vfork's does, could not be told apart."""
    place = Place(tmp_path, "file")
    place.fill("file")
    words = (flips, "write", "clone", 300, place.granted, place.denied)
    assert sandpit.plain(START, *words).returncode == 0
    assert not place.untouched("file")
    place.fill("file")
    words = (flips, "write", "clone", 1, place.granted, place.denied)
    done = sandpit.run(START, *words, options=place.policy("write"))
    assert done.returncode == 3, done.stdout
    assert place.untouched("file")
    assert [e["operation"] for e in sandpit.events("violation")] == ["clone"]


def test_another_processs_memory_is_not_written(sandpit, flips, tmp_path):
    place = Place(tmp_path, "file")
    place.fill("file")
    words = (flips, "write", "outside", 1, place.granted, place.denied)
    plain = sandpit.plain(START, *words)
    if plain.stdout.split() == ["0", "0"]:
        assert plain.returncode == 0
    done = sandpit.run(START, *words, options=place.policy("write"))
    error, unchanged = map(int, done.stdout.split())
    assert error != 0 and unchanged == 1
    assert any("process_vm" in e["operation"] for e in sandpit.events("violation"))


def test_path_that_only_the_guest_can_walk_changes_no_attribute(sandpit, flips, tmp_path):
    """What cannot be looked up was left to the kernel, which has no right for attributes: a
    thread could bring it to another file."""
    place = Place(tmp_path, "folder")
    place.fill("file")
    os.chmod(place.granted.parent, 0)
    words = (flips, "chmod", "thread", TRIES, place.granted, place.denied)
    done = sandpit.run(START, *words, options=place.policy("chmod"), timeout=1200)
    os.chmod(place.granted.parent, 0o755)
    assert done.returncode == 0, done.stderr
    assert place.untouched("file")


@pytest.fixture
def programs(tmp_path):
    """Two programs, of paths alike but for one character: one ends with 7, the other makes a
    file."""
    folder = tmp_path / "programs"
    folder.mkdir()
    mark = tmp_path / "mark"
    sources = {
        "p-a": "int main(void) { return 7; }\n",
        "p-b": "#include <fcntl.h>\n"
        f'int main(void) {{ return open("{mark}", O_CREAT | O_WRONLY, 0644) > 0 ? 8 : 9; }}\n',
    }
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(text)
        command = ["cc", "-o", folder / name, folder / f"{name}.c"]
        subprocess.run(command, check=True)
    return folder / "p-a", folder / "p-b", mark


def test_changing_program_and_argument(sandpit, flips, tmp_path, programs):
    granted, denied, mark = programs
    words = (flips, "exec", "thread", 100, granted, denied)
    assert sandpit.plain(START, *words).returncode == 0
    assert mark.exists()
    mark.unlink()
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[process]\nallow = ["{{python}}", "{flips}", "{granted}"]\n')
    words = (flips, "exec", "thread", TRIES // 2, granted, denied)
    done = sandpit.run(START, *words, options=("--policy", str(policy), "--calls", "off"),
                       timeout=1200)  # fmt: skip
    assert done.returncode == 0, done.stderr
    yes, no, other, strange, raced = map(int, done.stdout.split())
    assert (strange, other) == (0, 0)
    assert yes > 0 and no > 0 and raced > 0
    assert not mark.exists()
    told = sandpit.events("violation")
    assert {e["target"] for e in told} == {str(denied)}
    assert counted(told, denied) <= no
    started = [e for e in sandpit.events("exec") if e["path"] == str(granted)]
    # Which of the two arguments the kernel copied nobody can tell: it was seen before that.
    assert all(e["args"] == "observed" for e in started)
    assert {tuple(e["argv"]) for e in started} <= {("program", "a"), ("program", "b")}
    assert len(started) == yes
    assert sandpit.verify() == 0
