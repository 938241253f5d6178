"""Prints the interpreters that an agent is to be built for, one line each:

    3.12<TAB>/path/of/include<TAB>/path/of/python

Arguments: the building interpreter, then any number of further ones. `python3.N` on
PATH are added, and what pyenv installed. One per X.Y, the first found; what has no
headers, is no CPython, or is a version that the agent does not know is left out (said
on stderr).
"""

import glob
import os
import shutil
import subprocess
import sys

OLDEST = (3, 9)
NEWEST = (3, 13)

ASK = """
import platform, sys, sysconfig
paths = sysconfig.get_paths()
print(platform.python_implementation(), "%d.%d" % sys.version_info[:2],
      int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))), sep="\\t")
print(paths["include"], paths["platinclude"], sep="\\t")
"""


def ask(python):
    """Implementation, version, free-threaded, include folders; None: does not run."""
    try:
        answer = subprocess.run(
            [python, "-I", "-c", ASK],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout.splitlines()
        implementation, version, free_threaded = answer[0].split("\t")
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    return implementation, version, free_threaded == "1", answer[1].split("\t")


def reason_against(answer):
    """Why there is no agent for this interpreter, or None."""
    if answer is None:
        return "does not run"
    implementation, version, free_threaded, includes = answer
    number = tuple(int(part) for part in version.split("."))
    if implementation != "CPython":
        return f"is {implementation}"
    if not OLDEST <= number <= NEWEST:
        return f"is Python {version}"
    if free_threaded:
        return "has no GIL"
    if not any(os.path.exists(os.path.join(folder, "Python.h")) for folder in includes):
        return "has no headers (Python.h)"
    if not any(os.path.isdir(os.path.join(folder, "internal")) for folder in includes):
        return "has no internal headers"
    return None


def candidates(named):
    """The named interpreters, those on PATH, those behind the shims of pyenv."""
    yield from named
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        python = shutil.which(f"python3.{minor}")
        if python:
            yield python
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    yield from sorted(
        glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3"))
    )


def main():
    seen = set()
    for python in candidates(sys.argv[1:]):
        answer = ask(python)
        reason = reason_against(answer)
        if reason:
            print(f"no agent for {python}: it {reason}", file=sys.stderr)
        elif answer[1] not in seen:
            seen.add(answer[1])
            print(answer[1], ";".join(dict.fromkeys(answer[3])), python, sep="\t")


if __name__ == "__main__":
    main()
