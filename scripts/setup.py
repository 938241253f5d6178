"""Make the project's environment: system packages, `.venv`, sandpit built into it.

    setup.py [demo|test|check|bench|real] ...

Does only what is needed: a second call takes a fraction of a second unless sources
changed. Standard library only, and any Python from 3.9: this is what a fresh machine
runs first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pythons
import system_packages

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
BUILD = ROOT / "build"
PACKAGE_BUILD = BUILD / "package"
TEST_BUILD = BUILD / "test"

BUILD_TOOLS = [
    "meson-python>=0.17",
    "meson>=1.2",
    "ninja",
    "tomli; python_version < '3.11'",
]
SOURCES = (
    "src",
    "python",
    "policies",
    "meson.build",
    "meson_options.txt",
    "pyproject.toml",
)

SYSTEM = {
    "demo": system_packages.BUILD,
    "test": system_packages.BUILD + system_packages.TEST,
    "check": system_packages.BUILD + system_packages.TEST + system_packages.CHECK,
    "bench": system_packages.BUILD + system_packages.BENCH,
}
# Groups of optional dependencies in pyproject.toml.
EXTRAS = {"demo": [], "test": ["test"], "check": ["test", "dev"], "bench": ["bench"]}


class SetupFailed(Exception):
    """A step failed; the text is what to show."""


def run(title: str, command: list[object]) -> None:
    """Run one step, silent unless it fails."""
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": f"{VENV / 'bin'}:{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        shown = " ".join(words)
        raise SetupFailed(
            f"{done.stdout}\n{title} failed (exit code {done.returncode}): {shown}"
        )


class Stamp:
    """Remembers in `.venv` what a step was last done for, so that it is done once."""

    def __init__(self, name: str) -> None:
        self.path = VENV / f"{name}.stamp"

    def matches(self, value: str) -> bool:
        return self.path.is_file() and self.path.read_text() == value

    def write(self, value: str) -> None:
        self.path.write_text(value)


def digest_of(paths: list[Path], *words: str) -> str:
    """A digest that changes when a file of these trees does."""
    digest = hashlib.sha256("\0".join(words).encode())
    for top in paths:
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in files:
            if "__pycache__" in path.parts or not path.is_file():
                continue
            status = path.stat()
            line = f"{path.relative_to(ROOT)} {status.st_mtime_ns} {status.st_size}\n"
            digest.update(line.encode())
    return digest.hexdigest()


def make_venv() -> None:
    """Create `.venv`, anew when it is broken or of another Python version."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    code = "import sys, pip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return
    except OSError:
        pass
    print(f"creating .venv (Python {version})", flush=True)
    # The base interpreter, should the caller stand in a virtual environment of its own.
    base = getattr(sys, "_base_executable", sys.executable) or sys.executable
    run("creating .venv", [base, "-m", "venv", "--clear", VENV])


def install_packages(groups: list[str]) -> None:
    """Install the build tools and the dependencies of some groups of pyproject.toml."""
    wanted = list(BUILD_TOOLS)
    for group in groups:
        wanted += read_extras()[group]
    stamp = Stamp("packages-" + "-".join(["build", *groups]))
    value = "\n".join(wanted)
    if stamp.matches(value):
        return
    print(
        f"installing Python packages: {', '.join(['build tools', *groups])}", flush=True
    )
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check"]
    run("installing Python packages", [*pip, *wanted])
    stamp.write(value)


def ask(code: str) -> str:
    """What a few lines print in the environment."""
    done = subprocess.run(
        [PYTHON, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def read_extras() -> dict[str, list[str]]:
    """The optional dependencies, read by the environment's own TOML reader."""
    code = (
        "import json, pathlib\n"
        "try: import tomllib\n"
        "except ImportError: from pip._vendor import tomli as tomllib\n"
        "text = pathlib.Path('pyproject.toml').read_text(encoding='utf-8')\n"
        "print(json.dumps(tomllib.loads(text)['project']['optional-dependencies']))"
    )
    import json

    extras: dict[str, list[str]] = json.loads(ask(code))
    return extras


def build_options() -> list[str]:
    """What every build of ours is configured with: an agent for each Python of the
    machine."""
    found = [
        path
        for version, path in pythons.find().items()
        if version != sys.version_info[:2]
    ]
    return [f"-Dpythons={','.join(found)}"] if found else []


def install_sandpit(options: list[str]) -> None:
    """Build the project with pip into `.venv`; the build folder is kept, so it is
    incremental."""
    stamp = Stamp("sandpit")
    value = digest_of([ROOT / name for name in SOURCES], *options)
    if stamp.matches(value):
        return
    first = not PACKAGE_BUILD.exists()
    print(
        "building sandpit" + (" (a minute, the first time)" if first else ""),
        flush=True,
    )
    command: list[object] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
    ]
    command += ["--no-build-isolation", "--no-deps", "--force-reinstall", "--no-index"]
    command += [f"--config-settings=build-dir={PACKAGE_BUILD}"]
    command += [f"--config-settings=setup-args={option}" for option in options]
    run("building sandpit", [*command, ROOT])
    stamp.write(value)


def configure(folder: Path, options: list[str]) -> None:
    """Set up a Meson build folder, or bring an existing one up to these options."""
    command: list[object] = [VENV / "bin/meson", "setup", folder, *options]
    if (folder / "build.ninja").exists():
        command.append("--reconfigure")
    stamp = Stamp(f"configured-{folder.name}")
    value = "\n".join([str(folder), *options])
    if stamp.matches(value) and (folder / "build.ninja").exists():
        return
    run(f"configuring {folder.name}", command)
    stamp.write(value)


def build_tests(folder: Path, *options: str) -> None:
    """Build the C tests in a Meson build folder of their own."""
    configure(folder, ["-Dtests=true", *build_options(), *options])
    print(f"building {folder.relative_to(ROOT)}", flush=True)
    run("building the tests", [VENV / "bin/ninja", "-C", folder])


def set_up(purpose: str) -> None:
    """Bring the environment up to what a purpose needs."""
    system_packages.ensure(SYSTEM[purpose])
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_venv()
        install_packages(EXTRAS[purpose])
        install_sandpit(build_options())


def main() -> int:
    purposes = sys.argv[1:] or ["demo"]
    if tuple(sys.version_info) < (3, 9):
        print("sandpit needs Python 3.9 or newer", file=sys.stderr)
        return 1
    try:
        for purpose in purposes:
            set_up(purpose)
    except (SetupFailed, system_packages.MissingPackages) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
