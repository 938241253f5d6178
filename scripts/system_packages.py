"""What the build needs from the system, how to tell that it is there, how to get it.

Standard library only, and any Python from 3.9: this runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Callable


@dataclass(frozen=True)
class Need:
    """One thing the system must have, and the Debian package that brings it."""

    name: str
    package: str
    present: Callable[[], bool]


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _compiler_finds(archive: str) -> bool:
    """Whether it lies where the linker looks; some modules name another folder."""
    for compiler in ("cc", "gcc", "clang"):
        if shutil.which(compiler):
            command = [compiler, f"-print-file-name={archive}"]
            done = subprocess.run(command, capture_output=True, text=True)
            return os.path.isabs(done.stdout.strip())
    return False


def _library(name: str, archive: str = "") -> Callable[[], bool]:
    """A pkg-config module, and its static archive when the program links that."""

    def present() -> bool:
        command = ["pkg-config", "--variable=libdir", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            return False
        if done.returncode != 0:
            return False
        named = Path(done.stdout.strip()) / archive
        return not archive or named.exists() or _compiler_finds(archive)

    return present


def _python_headers() -> bool:
    return (Path(sysconfig.get_paths()["include"]) / "Python.h").exists()


def _venv_module() -> bool:
    code = "import ensurepip, venv"
    return (
        subprocess.run([sys.executable, "-c", code], capture_output=True).returncode
        == 0
    )


def _kernel_headers() -> bool:
    return Path("/usr/include/linux/seccomp.h").exists()


def _python_package(suffix: str) -> str:
    """The package that belongs to the running interpreter: python3.13-dev."""
    return f"python{sys.version_info[0]}.{sys.version_info[1]}-{suffix}"


BUILD = (
    Need("a C compiler", "gcc", _program("cc", "gcc", "clang")),
    Need("a C++ compiler", "g++", _program("c++", "g++", "clang++")),
    Need("pkg-config", "pkg-config", _program("pkg-config", "pkgconf")),
    Need("the C library's headers", "libc6-dev", _kernel_headers),
    Need("libsodium", "libsodium-dev", _library("libsodium", "libsodium.a")),
    Need("jansson", "libjansson-dev", _library("jansson", "libjansson.a")),
    Need("toml++", "libtomlplusplus-dev", _library("tomlplusplus")),
    Need("zstd", "libzstd-dev", _library("libzstd", "libzstd.a")),
    Need("simdjson", "libsimdjson-dev", _library("simdjson")),
    Need("Python's headers", _python_package("dev"), _python_headers),
    Need("Python's venv module", _python_package("venv"), _venv_module),
)
STRACE = Need("strace", "strace", _program("strace"))
TEST = (
    Need("cmocka", "libcmocka-dev", _library("cmocka")),
    Need("libseccomp", "libseccomp-dev", _library("libseccomp")),
    STRACE,
    Need("jq", "jq", _program("jq")),
)
KERNELS = (
    Need("QEMU", "qemu-system-x86", _program("qemu-system-x86_64")),
    Need("mke2fs", "e2fsprogs", lambda: Path("/sbin/mke2fs").exists()),
)
BENCH = (Need("bubblewrap", "bubblewrap", _program("bwrap")), STRACE)
CHECK = (Need("clang-tidy", "clang-tidy", _program("clang-tidy")),)


class MissingPackages(Exception):
    """Something is missing that this user cannot install; the text says what and
    how."""


def _administrator() -> list[str] | None:
    """The words that make a command run as root; None when there are none."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo"]
    return ["sudo"] if sys.stdin.isatty() else None


def _apt(prefix: list[str], *arguments: str) -> str:
    """Run apt-get; what it complained about when it failed, "" when it did not."""
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    command += ["-q", "-y", "-o", "DPkg::Lock::Timeout=300", *arguments]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or f"apt-get ended with exit code {done.returncode}"


def _install(packages: list[str], prefix: list[str]) -> str:
    arguments = ["install", "--no-install-recommends", *packages]
    # The lists may be absent or older than the archive: then one update and once more.
    if not _apt(prefix, *arguments):
        return ""
    return _apt(prefix, "update") or _apt(prefix, *arguments)


def ensure(needs: tuple[Need, ...]) -> None:
    """Install what is missing, or raise MissingPackages that says what to type."""
    missing = [need for need in needs if not need.present()]
    if not missing:
        return
    packages = [need.package for need in missing]
    names = ", ".join(need.name for need in missing)
    if shutil.which("apt-get") is None:
        raise MissingPackages(
            f"missing: {names}\n"
            f"install them (on Debian they are called: {' '.join(packages)}), "
            "then try again"
        )
    remedy = f"apt-get install {' '.join(packages)}"
    prefix = _administrator()
    if prefix is None:
        raise MissingPackages(f"missing: {names}\ninstall them as root: {remedy}")
    print(f"installing system packages: {' '.join(packages)}", flush=True)
    complaint = _install(packages, prefix)
    if complaint:
        raise MissingPackages(
            f"{complaint}\ncould not install: {names}\ntry yourself: {remedy}"
        )
    still = [need.name for need in missing if not need.present()]
    if still:
        raise MissingPackages(f"still missing after installing: {', '.join(still)}")
