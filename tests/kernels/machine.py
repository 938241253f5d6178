"""One start of a virtual machine, and what it told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from cells import LSM, Boot
from downloads import Unavailable

QEMU = "qemu-system-x86_64"
MEMORY_MIB = 2560
LIMIT_S = 5400


def boot(
    what: Boot, image: Path, initrd: Path, disk: Path, folder: Path, accelerator: str
) -> list[dict[str, Any]]:
    """Start it, wait for its end, give what it told on its second serial line.

    What its kernel and the tests printed is kept in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    results.unlink(missing_ok=True)
    words = ["console=ttyS0", "quiet", "panic=-1", f"lsm={LSM[what.lsm]}"]
    words += [f"sandpit.tests={what.tests}", f"sandpit.yama={','.join(what.yama)}"]
    words += [f"sandpit.users={','.join(what.users)}"]
    if what.files:
        words.append(f"sandpit.files={','.join(what.files)}")
    command = [QEMU, "-accel", accelerator, "-cpu", "max", "-smp", "2"]
    command += ["-m", str(MEMORY_MIB), "-display", "none", "-no-reboot", "-nodefaults"]
    command += ["-kernel", str(image), "-initrd", str(initrd)]
    command += ["-append", " ".join(words)]
    # The disk is shared: what a machine writes is gone when it ends.
    command += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on"]
    command += [
        "-serial",
        f"file:{folder / 'console.txt'}",
        "-serial",
        f"file:{results}",
    ]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
    except OSError as error:
        raise Unavailable(f"{QEMU}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        return [*_read(results), {"broken": f"no end within {LIMIT_S} s"}]
    except subprocess.CalledProcessError as error:
        return [*_read(results), {"broken": f"{QEMU} ended with {error.returncode}"}]
    told = _read(results)
    if not told or "end" not in told[-1]:
        told.append({"broken": f"it told no end; see {folder / 'console.txt'}"})
    return told


def _read(results: Path) -> list[dict[str, Any]]:
    if not results.exists():
        return []
    told = []
    for line in results.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            told.append(json.loads(line))
        except ValueError:
            told.append({"broken": f"not understood: {line[:100]}"})
    return told
