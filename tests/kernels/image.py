"""Makes what a virtual machine boots: a root file system of this machine's own programs, and
the first steps (an initial RAM disk) that find it.

The root holds one interpreter, pytest, sandpit as it was built, the project, a C compiler
and the programs that tests start, each at the path it has here. It is an ext4 file system,
made without mounting anything.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from downloads import Kernel, Unavailable

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path("/project")
SIZE_MIB = 2048

PROGRAMS = (
    "sh bash cat chmod chown cp cut dd df echo env false find grep head id "
    "kill ldd ln ls mkdir mkfifo mknod mktemp mount mv nm ps readelf rm rmdir "
    "sed setpriv sleep sort stat tail tee timeout touch tr true umount uname "
    "unshare wc xargs"
)
COMPILER = (
    "gcc",
    "gcc-12",
    "cpp-12",
    "binutils",
    "binutils-x86-64-linux-gnu",
    "libgcc-12-dev",
)
HEADERS = ("libc6-dev", "linux-libc-dev", "libcrypt-dev")
PACKAGES = (
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "pytest_timeout",
)
# Of the interpreter, what no test here needs: it would make the image three times as large.
UNUSED = {
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
}
# Kernel modules: the disk, and what the kernel loads by itself when a socket is asked about.
MODULES = ("virtio_blk", "virtio_pci", "unix_diag", "inet_diag", "tcp_diag", "udp_diag")


@dataclass(frozen=True)
class Build:
    """What is tested: where this checkout was built and installed."""

    python: str
    program_folder: Path
    agents: Path
    package: Path
    native: Path
    c_tests: Path


class Tree:
    """A folder that becomes the root of the image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._copied: set[str] = set()
        shutil.rmtree(folder, ignore_errors=True)
        for name in (
            "dev",
            "proc",
            "sys",
            "tmp",
            "run",
            "root",
            "var/tmp",
            "usr/bin",
            "usr/lib",
            "usr/lib64",
            "usr/sbin",
            "etc",
            "var",
        ):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (folder / name).symlink_to(f"usr/{name}")

    def inside(self, path: str | Path) -> Path:
        """Where a path of the machine to be lies in the folder, on the way to the image."""
        path = Path(path)
        for name in ("bin", "lib", "lib64", "sbin"):
            if len(path.parts) > 1 and path.parts[1] == name:
                path = Path("/usr", *path.parts[1:])
        return self.folder / path.relative_to("/")

    def write(self, path: str, text: str) -> None:
        target = self.inside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def copy(self, source: str | Path, path: str | Path | None = None) -> None:
        """Copy a file, and the libraries that it loads if it is a program."""
        source = str(source)
        target = self.inside(path or source)
        if str(target) in self._copied:
            return
        self._copied.add(str(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.exists():
            return
        shutil.copy2(source, target)
        if _is_elf(source):
            for library in _libraries(source):
                self.copy(library)

    def copy_tree(
        self, source: Path, path: str | Path, unused: frozenset[str] = frozenset()
    ) -> None:
        """Copy a folder, without the names in `unused`."""
        for folder, names, files in os.walk(source, followlinks=True):
            names[:] = [one for one in names if one not in unused]
            inner = Path(folder).relative_to(source)
            for name in files:
                if not os.path.exists(os.path.join(folder, name)):
                    continue
                self.copy(os.path.join(folder, name), Path(path) / inner / name)


def _is_elf(path: str) -> bool:
    with open(path, "rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _libraries(path: str) -> list[str]:
    """What the loader loads for a program or library, the loader itself included."""
    done = subprocess.run(["ldd", path], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def _packaged(packages: tuple[str, ...]) -> list[str]:
    """The files of Debian packages, as far as a compiler needs them."""
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True)
    wanted = (
        "/usr/bin",
        "/usr/lib",
        "/usr/include",
        "/usr/libexec",
        "/lib",
        "/etc/alternatives",
    )
    return [
        one
        for one in listed.stdout.splitlines()
        if one.startswith(wanted) and os.path.isfile(one) and "/locale/" not in one
    ]


def make_tree(folder: Path, build: Build) -> None:
    """Fill the folder that becomes the root."""
    tree = Tree(folder)
    for name in PROGRAMS.split():
        found = shutil.which(name)
        if found:
            tree.copy(os.path.realpath(found), f"/usr/bin/{name}")
    _add_compiler(tree)
    _add_interpreter(tree, build)
    _add_project(tree, build)
    tree.write(
        "/etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
    )
    tree.write("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
    tree.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    tree.write("/etc/nsswitch.conf", "hosts: files dns\n")
    tree.write("/etc/resolv.conf", "")  # where a test mounts its own


def _add_compiler(tree: Tree) -> None:
    if shutil.which("cc") is None or shutil.which("dpkg") is None:
        return
    for path in _packaged(COMPILER + HEADERS):
        tree.copy(path)
    tree.copy(os.path.realpath(shutil.which("cc") or ""), "/usr/bin/cc")


def _add_interpreter(tree: Tree, build: Build) -> None:
    """The interpreter, at its own path, and an environment of it in the project."""
    ask = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix, '%d.%d' % sys.version_info[:2])"
    done = subprocess.run(
        [build.python, "-c", ask], capture_output=True, text=True, check=True
    )
    real, prefix, version = done.stdout.split()
    label = f"python{version}"
    tree.copy(real)
    for name in ("python3", label):
        link = tree.inside(real).with_name(name)
        if not link.exists():
            link.symlink_to(os.path.basename(real))
    library = Path(prefix) / "lib" / label
    tree.copy_tree(library, library, frozenset(UNUSED))
    # Test programs ask where its headers lie; nothing is built for it there.
    venv = PROJECT / ".venv"
    tree.write(
        f"{venv}/pyvenv.cfg",
        f"home = {os.path.dirname(real)}\ninclude-system-site-packages = false\n",
    )
    (tree.inside(venv) / "bin").mkdir()
    for name in ("python", "python3", label):
        (tree.inside(venv) / "bin" / name).symlink_to(real)
    packages = venv / "lib" / label / "site-packages"
    for name in PACKAGES:
        folder = _package_folder(build.python, name)
        if folder is not None and folder.is_dir():
            tree.copy_tree(folder, packages / name)
        elif folder is not None:
            tree.copy(folder, packages / folder.name)
    _add_entry_points(tree, build, packages)
    for name in ("sandpit", "sandpit-trace"):
        tree.copy(build.program_folder / name, venv / "bin" / name)
    tree.copy_tree(
        build.package, packages / "sandpit", frozenset({"_agents", "__pycache__"})
    )
    tree.copy(build.native, packages / "sandpit" / build.native.name)
    for path in sorted(build.agents.glob("*")):
        if path.is_file():
            tree.copy(path, packages / "sandpit/_agents" / path.name)


def _package_folder(python: str, name: str) -> Path | None:
    """Where a package lies, or a module of one file."""
    code = (
        "import importlib.util as u, sys; s = u.find_spec(sys.argv[1]);"
        "print('' if s is None else (s.submodule_search_locations or [s.origin])[0])"
    )
    done = subprocess.run(
        [python, "-c", code, name], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip()) if done.stdout.strip() else None


def _add_entry_points(tree: Tree, build: Build, packages: Path) -> None:
    """pytest finds its plug-ins by what is said about installed packages."""
    folder = _package_folder(build.python, "pytest_timeout")
    if folder is not None:
        for path in folder.parent.glob("pytest_timeout-*.dist-info"):
            tree.copy_tree(path, packages / path.name)


def _add_project(tree: Tree, build: Build) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("bench/", ".")):
            tree.copy(ROOT / name, PROJECT / name)
    for path in sorted(build.c_tests.iterdir()):
        if path.is_file() and os.access(path, os.X_OK):
            tree.copy(path, PROJECT / "build/c" / path.name)


def make_disk(tree: Path, disk: Path) -> None:
    """Turn the folder into a file system."""
    disk.unlink(missing_ok=True)
    with open(disk, "wb") as stream:
        stream.truncate(SIZE_MIB << 20)
    command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0"]
    command += ["-E", "root_owner=0:0", "-d", str(tree), str(disk)]
    environment = {
        **os.environ,
        "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Unavailable(f"mke2fs: {done.stderr.strip()}")


# ---- the initial RAM disk -----------------------------------------------------------------------

INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
for module in {modules}; do
    /bin/busybox insmod /modules/$module.ko || echo "insmod $module failed"
done
/bin/busybox mount -t ext4 -o rw,noatime /dev/vda /root || /bin/busybox poweroff -f
exec /bin/busybox switch_root /root /bin/sh /project/tests/kernels/boot.sh
"""


def make_initrd(kernel: Kernel, busybox: Path, path: Path) -> None:
    """Busybox, the modules in the order they need each other, and the steps."""
    found = {
        one.name.split(".")[0].replace("-", "_"): one
        for one in kernel.modules.rglob("*.ko*")
    }
    order: list[str] = []
    for name in MODULES:
        _with_needs(name, found, order)
    archive = Archive()
    for folder in ("bin", "dev", "proc", "root", "modules"):
        archive.add(folder, b"", stat.S_IFDIR | 0o755)
    archive.add("bin/busybox", busybox.read_bytes(), stat.S_IFREG | 0o755)
    for name in order:
        archive.add(f"modules/{name}.ko", _module(found[name]), stat.S_IFREG | 0o644)
    script = INIT.format(modules=" ".join(order)).encode()
    archive.add("init", script, stat.S_IFREG | 0o755)
    path.write_bytes(archive.end())


def _module(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def _with_needs(name: str, found: dict[str, Path], order: list[str]) -> None:
    """Append a module after those that it says it depends on; built-in ones have no file."""
    if name in order or name not in found:
        return
    said = re.search(rb"\0depends=([^\0]*)\0", _module(found[name]))
    for other in said.group(1).decode().split(",") if said else []:
        if other:
            _with_needs(other.replace("-", "_"), found, order)
    order.append(name)


class Archive:
    """A cpio archive as the kernel unpacks it ("newc")."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._inode = 0

    def add(self, name: str, data: bytes, mode: int) -> None:
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = [self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        header = b"070701" + b"".join(b"%08x" % one for one in fields)
        self._parts += [_padded(header + encoded), _padded(data)]

    def end(self) -> bytes:
        self.add("TRAILER!!!", b"", 0)
        return b"".join(self._parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


if __name__ == "__main__":
    sys.exit("see run_matrix.py")
