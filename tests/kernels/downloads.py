"""Fetches Debian's kernels, and busybox for the first steps of a boot, and keeps them.

They come from the mirror that this machine's apt uses, through an apt that keeps lists
and settings of its own below the download folder: neither the system's sources nor what
is installed changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
KERNEL = "linux-image-cloud-amd64"


class Unavailable(Exception):
    """It cannot be had here; the text says why."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel package."""

    release: str
    image: Path
    modules: Path


class Archive:
    """One suite of Debian, seen through an apt of our own."""

    def __init__(self, suite: str, folder: Path) -> None:
        self.suite = suite
        self.folder = folder
        self._updated = False

    def fetch(self, package: str) -> Path:
        """Give the .deb of a package; apt checks its signature and digest."""
        self._update()
        self._apt("apt-get", "download", package)
        found = sorted(self.folder.glob(f"{package}_*.deb"), key=os.path.getmtime)
        if not found:
            raise Unavailable(f"apt-get download {package} left no file")
        return found[-1]

    def kernel_package(self) -> str:
        """The package that the suite's kernel is in: its name carries the release."""
        self._update()
        shown = self._apt("apt-cache", "depends", "--important", KERNEL)
        for line in shown.splitlines():
            kind, _, name = line.strip().partition("Depends: ")
            if not kind and name.startswith("linux-image-"):
                return name
        raise Unavailable(f"{KERNEL} of {self.suite} depends on no kernel")

    def _update(self) -> None:
        if self._updated:
            return
        for part in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / "apt" / part).mkdir(parents=True, exist_ok=True)
        line = f"deb [signed-by={KEYRING}] {_mirror()} {self.suite} main\n"
        (self.folder / "apt/sources.list").write_text(line)
        self._apt("apt-get", "update")
        self._updated = True

    def _apt(self, program: str, *arguments: str) -> str:
        own = self.folder.resolve() / "apt"
        settings = {
            "Dir::Etc::SourceList": own / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State::Lists": own / "state/lists",
            "Dir::Cache": own / "cache",
            "APT::Architecture": "amd64",
            "Acquire::Languages": "none",
            # The folder is ours; apt's own user may not be able to write there.
            "APT::Sandbox::User": "root",
        }
        words = [f"-o{name}={value}" for name, value in settings.items()]
        try:
            done = subprocess.run(
                [program, "-q", *words, *arguments],
                cwd=self.folder,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise Unavailable(f"{program}: {error.strerror}") from error
        if done.returncode != 0:
            raise Unavailable(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def _mirror() -> str:
    """Where this machine's apt finds Debian."""
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as why:
        raise Unavailable(f"there is no apt here: {why}") from None
    for line in done.stdout.splitlines():
        origin, _, address = line.partition(" ")
        if origin == "Debian" and "security" not in address:
            return address.rstrip("/")
    raise Unavailable("apt knows no mirror of Debian")


def unpack(package: Path, folder: Path) -> Path:
    """Unpack a .deb, once."""
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = ["dpkg-deb", "-x", str(package), str(partial)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"{package.name}: {done.stderr.strip()}")
        partial.rename(folder)
    return folder


def kernel(version: str, suite: str, folder: Path) -> Kernel:
    """The kernel of a suite, which must be of the version; from the folder if it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = folder / "kernel"
    if not tree.is_dir():
        archive = Archive(suite, folder)
        name = archive.kernel_package()
        if not name.startswith(f"linux-image-{version}."):
            raise Unavailable(f"{suite} has {name}, not {version}")
        unpack(archive.fetch(name), tree)
    images = list(tree.glob("boot/vmlinuz-*"))
    release = images[0].name.removeprefix("vmlinuz-")
    modules = [tree / top / "modules" / release for top in ("usr/lib", "lib")]
    return Kernel(release, images[0], next(one for one in modules if one.is_dir()))


def busybox(suite: str, folder: Path) -> Path:
    """A static busybox."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = folder / "busybox"
    if not tree.is_dir():
        unpack(Archive(suite, folder).fetch("busybox-static"), tree)
    return next(
        one for one in (tree / "bin/busybox", tree / "usr/bin/busybox") if one.exists()
    )
