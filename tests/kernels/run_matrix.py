"""The confinement tests on Debian's kernels, each in a virtual machine of its own.

    run_matrix.py [--kernel 6.1|6.12] [--lsm landlock|none] [--only all|yama|hidden|none]
                  [--user root|nobody] [TEST...]

Ends in a table, kernel by user by security modules by Yama, and one line. Downloads are
kept in build/kernels. Without QEMU, or where Debian's kernels cannot be had, it is skipped,
unless SANDPIT_REQUIRE names `kernels`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import cells
import downloads
import image
import machine
import setup
import system_packages

ROOT = Path(__file__).resolve().parents[2]


def ours() -> image.Build:
    """What `make` has built and installed in this checkout."""
    setup.set_up("test")
    setup.build_tests(setup.TEST_BUILD)
    code = "import sandpit; print(sandpit.__path__[0])"
    package = Path(setup.ask(code))
    return image.Build(
        python=str(setup.PYTHON),
        program_folder=setup.VENV / "bin",
        agents=package / "_agents",
        package=package,
        native=package / "_native.abi3.so",
        c_tests=setup.TEST_BUILD / "tests/unit",
    )


def given(folder: str) -> image.Build:
    """A build folder with `src` and `tests`, whose interpreter is the running one."""
    build = Path(folder)
    return image.Build(
        python=sys.executable,
        program_folder=build / "src/cli",
        agents=build / "src/agent",
        package=ROOT / "python/sandpit",
        native=build / "src/binding/_native.abi3.so",
        c_tests=build / "tests/unit",
    )


def row(boot: cells.Boot, told: dict[str, Any], abi: int) -> str:
    landlock = f"ABI {abi}" if abi > 0 else "none"
    counts = "  ".join(f"{told[one]:>7}" for one in ("passed", "failed", "skipped"))
    return (
        f"{boot.kernel:<7} {told['user']:<7} {landlock:<9} {told['yama']:<5} {boot.tests:<6}"
        f" {counts}  {told['took_s']:>6}"
    )


def show(
    boot: cells.Boot, told: list[dict[str, Any]], table: list[str]
) -> tuple[int, int, int]:
    """Print what failed, add lines to the table, give the counts."""
    abi = next((one["landlock"] for one in told if "landlock" in one), 0)
    counts = [0, 0, 0]
    for one in told:
        if "failure" in one:
            print(f"FAILED {one['failure']}\n{one['text']}")
        elif "broken" in one:
            print(f"BROKEN {boot.kernel} {boot.lsm} {boot.tests}: {one['broken']}")
            counts[1] += 1
        elif "user" in one:
            table.append(row(boot, one, abi))
            print(table[-1], flush=True)
            for i, name in enumerate(("passed", "failed", "skipped")):
                counts[i] += one[name]
    return counts[0], counts[1], counts[2]


def run(
    boots: list[cells.Boot], build: image.Build, folder: Path, accelerator: str
) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    kernels = {
        one: downloads.kernel(one, suite, folder / one)
        for one, suite in cells.KERNELS.items()
        if any(boot.kernel == one for boot in boots)
    }
    busybox = downloads.busybox(cells.BUSYBOX, folder / "busybox")
    print("making the image", flush=True)
    image.make_tree(folder / "tree", build)
    image.make_disk(folder / "tree", folder / "disk.ext4")
    table: list[str] = []
    total = [0, 0, 0]
    for boot in boots:
        kernel = kernels[boot.kernel]
        initrd = folder / f"{boot.kernel}.initrd"
        image.make_initrd(kernel, busybox, initrd)
        print(f"booting {kernel.release}, lsm={cells.LSM[boot.lsm]}", flush=True)
        place = folder / f"run-{boot.kernel}-{boot.lsm}-{boot.tests}"
        disk = folder / "disk.ext4"
        told = machine.boot(boot, kernel.image, initrd, disk, place, accelerator)
        for i, count in enumerate(show(boot, told, table)):
            total[i] += count
    print(
        "\nkernel  user    landlock  yama  tests   passed   failed  skipped   seconds"
    )
    print("\n".join(table))
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--kernel", choices=list(cells.KERNELS))
    parser.add_argument("--lsm", choices=list(cells.LSM))
    parser.add_argument("--only", choices=["all", "yama", "hidden", "none"])
    parser.add_argument(
        "--build", help="a Meson build folder, instead of .venv and build/"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build/kernels")
    # Where a machine is itself a virtual one, KVM may be there and never get anywhere.
    parser.add_argument("--accelerator", default="tcg,thread=multi", help="or kvm")
    parser.add_argument("--user", choices=["root", "nobody"])
    parser.add_argument("files", nargs="*", help="in place of the lists in cells.py")
    options = parser.parse_args()
    users = (options.user,) if options.user else None
    boots = [
        dataclasses.replace(one, users=users or one.users, files=tuple(options.files))
        for one in cells.BOOTS
        if options.kernel in (None, one.kernel)
        and options.lsm in (None, one.lsm)
        and options.only in (None, one.tests)
    ]
    try:
        build = given(options.build) if options.build else ours()
        system_packages.ensure(system_packages.KERNELS)
        return run(boots, build, options.folder.resolve(), options.accelerator)
    except setup.SetupFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    except (downloads.Unavailable, system_packages.MissingPackages) as problem:
        demanded = os.environ.get("SANDPIT_REQUIRE", "").replace(",", " ").split()
        print(
            f"{'FAILED' if 'kernels' in demanded else 'skipped'}: requires: kernels ({problem})"
        )
        return 1 if "kernels" in demanded else 0


if __name__ == "__main__":
    sys.exit(main())
