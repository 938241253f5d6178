"""The same program plainly, step by step beside the evaluator, and under sandpit; and what differs."""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import pickle
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import trees
from evaluator import Policy
from operations import Ask, Operation
from writing import Generator, script

import policies

TIMEOUT_S = 120


@dataclass
class Step:
    """What one operation is to give."""

    verdict: str  # allow, deny, either, skip
    result: object = None
    denials: list[tuple[str, bytes]] = field(default_factory=list)
    event: dict | None = None
    fails: bool = False  # at the lookup: where its path leads to is not told


@dataclass
class Case:
    """A tree, a policy and a program, and where they are played."""

    base: Path
    entries: list[trees.Entry]
    lists: dict[str, list[str]]
    operations: list[Operation]
    folders: list[bytes]
    observed: bool = False  # what is denied is told of, and done

    @property
    def root(self) -> bytes:
        return os.fsencode(root_below(self.base))


def root_below(base: Path) -> Path:
    """Some folders down, so that no `..` of a program leads out."""
    return base / "1" / "2" / "3" / "4" / "t"


def make_case(seed: int, base: Path, count: int, observed: bool = False) -> Case:
    """Make the case of a seed; its paths depend on `base`."""
    rng = random.Random(seed)
    root = os.fsencode(root_below(base))
    entries = trees.random_tree(rng, root)
    always = ["{python}", str(base / "script.py")]
    lists = policies.random_policy(rng, root, entries, always)
    generator = Generator(rng, root, entries)
    operations = [generator.operation() for _ in range(count)]
    return Case(base, entries, lists, operations, generator.folders, observed)


def fresh_tree(case: Case) -> None:
    """Put the tree there as it was."""
    where = root_below(case.base)
    trees.open_folders(os.fsencode(where))
    shutil.rmtree(where, ignore_errors=True)
    where.parent.mkdir(parents=True, exist_ok=True)
    trees.build(case.root, case.entries)


# ---- the plain side


def drop_capabilities() -> None:
    """Be as the guest of root is: the owner of root's files and no more."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    if os.geteuid() == 0 and ctypes.CDLL(None).capset(header, data) != 0:
        raise OSError("capset")


def unmoved(policy: Policy, ask: Ask, ends: tuple[bytes, bytes]) -> str:
    """What a move makes of rights: deny where something that is denied would get to where it is
    not; either where something might that is not there."""
    source, target = ends
    below = [b""]
    renames = ask.needs[0][1] == "rename"
    # What lies where a link leads does not move with it.
    walked = renames and not os.path.islink(source)
    for folder, names, others in os.walk(source) if walked else ():
        below += [os.path.join(folder, n)[len(source) :] for n in [*names, *others]]
    kinds = ["read", "write"] if renames else ["read"]
    for what in kinds:
        for name in below:
            if not policy.allows(what, source + name) and policy.allows(
                what, target + name
            ):
                return "deny"
    try:
        inside = renames and stat.S_ISDIR(os.lstat(source).st_mode)
    except PermissionError:  # seen by a descriptor only: what is in it is not
        inside = renames
    if inside and (policy.denies_inside(source) or policy.allows_inside(target)):
        return "either"
    return "allow"


def judge(policy: Policy, ask: Ask) -> Step:
    """Say what is to come of an operation that gets as far as the policy."""
    if ask.fails:
        return Step("allow", event=ask.event, fails=True)
    denials = [(op, path) for what, op, path in ask.needs if not policy.allows(what, path)]
    verdict = "deny" if denials else "allow"
    for ends in (ask.move, ask.swap):
        if ends is None:
            continue
        moved = unmoved(policy, ask, ends)
        if moved != "allow":
            denials.append((ask.needs[0][1], ends[0]))
            verdict = "deny" if "deny" in (moved, verdict) else "either"
    return Step(verdict, denials=denials, event=ask.event)


def within(root: bytes, ask: Ask) -> bool:
    """Tell whether all that an operation can reach lies in the tree."""
    if ask.fails and ask.event and ask.event["kind"] == "open":
        return True
    paths = [path for _, _, path in ask.needs if path]
    return all(path == root or path.startswith(root + b"/") for path in paths)


def step_through(case: Case, policy: Policy) -> list[Step]:
    """Run what is allowed, in this process."""
    names: dict = {"__name__": "plain"}
    text, _ = script(case.operations, case.folders, {})
    exec(compile(text, "plain", "exec"), names)
    steps = []
    for i, operation in enumerate(case.operations):
        try:
            ask = operation.ask(names)
        except LookupError:
            ask = Ask(skip=True)
        if ask.skip or not within(case.root, ask):
            steps.append(Step("skip"))
            continue
        step = judge(policy, ask)
        if operation.native and not policy.judges("read") and not ask.changes:
            step.event = None  # such a read is told of where it can be denied
        if ask.event and ask.event["kind"] == "bind" and ask.fails:
            step.event = None
        if step.verdict == "either":
            step = Step("skip")
        elif step.verdict == "allow" or case.observed:
            step.result = names["attempt"](i)
            no_path = re.search(r"[( ]b''[,)]", operation.source)
            if step.result == ["error", errno.ENAMETOOLONG] or (ask.fails and no_path):
                step.event = None  # there is no path to tell of
        steps.append(step)
    return steps


def play_plainly(case: Case, policy: Policy) -> list[Step]:
    """Step through it in a child, whose folder, descriptors and rights are its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            signal.alarm(TIMEOUT_S)
            drop_capabilities()
            os.chdir(case.root + b"/w")
            told: object = step_through(case, policy)
        except BaseException as problem:
            import traceback

            told = f"{problem!r}\n{traceback.format_exc()}"
        with open(writer, "wb") as stream:
            pickle.dump(told, stream)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        told = stream.read()
    os.waitpid(child, 0)
    steps = pickle.loads(told)
    if isinstance(steps, str):
        raise AssertionError(f"the plain side failed: {steps}")
    return steps


# ---- the confined side


@dataclass
class Confined:
    """What a run under sandpit gave."""

    results: list
    events: dict[int, list[dict]]  # by operation
    loose: list[str]  # paths of opens that are told without a place
    others: list[dict]  # violations anywhere else


def run_confined(
    case: Case, program: Path, times: dict[int, int], environment: dict[str, str]
) -> Confined:
    """Run the program under the policy."""
    text, first = script(case.operations, case.folders, times)
    path, trace = case.base / "script.py", case.base / "run.sptrace"
    path.write_text(text)
    (case.base / "policy.toml").write_text(policies.toml(case.lists))
    command = [str(program), "run", "--quiet", "--calls", "off", "-o", str(trace)]
    command += ["--policy", str(case.base / "policy.toml"), "--python", sys.executable]
    command += ["--observe"] if case.observed else []
    command += ["--python-option=-I", "--python-option=-S", str(path)]
    done = subprocess.run(
        command, cwd=case.root + b"/w", env={**os.environ, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.decode()[-2000:]}")
    events: dict[int, list[dict]] = {}
    others, loose = [], []
    with open(trace, encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            if line["kind"] not in ("open", "file", "bind", "violation"):
                continue
            file, _, number = line.get("at", "").rpartition(":")
            at = int(number or 0) - first
            if file == str(path) and 0 <= at < len(case.operations):
                events.setdefault(at, []).append(line)
            elif line["kind"] == "violation":
                others.append(line)
            elif line["kind"] == "open" and "at" not in line:
                loose.append(nameless(line["path"]))
    return Confined(json.loads(done.stdout), events, loose, others)


# ---- what differs


def shown(path: bytes) -> str:
    """A path as traces have it; a nameless file's number is another one each time."""
    return nameless(path.decode("utf-8", "surrogateescape"))


def nameless(path: str) -> str:
    return re.sub("/#[0-9]+$", "/#", path)


def event_differs(
    step: Step, events: list[dict], times: int, loose: list[str], observed: bool
) -> str | None:
    """Say what is wrong with the events of an operation. No frames are walked for a read of
    native code that is let through: such an event has its path only."""
    denials = [one for one in events if one["kind"] == "violation"]
    acts = [one for one in events if one["kind"] != "violation"]
    if step.verdict == "deny":
        acts = [] if observed else acts
        told = {(one["operation"], nameless(one["target"])) for one in denials}
        count = sum(one.get("count", 1) for one in denials)
        if acts:
            return f"denied, but there is {acts}"
        if {one["action"] for one in denials} - {"observe" if observed else "deny"}:
            return f"the action of {denials}"
        if len(told) != 1 or count != times:
            return f"{count} violations of {told}, not {times}"
        if not told <= {(op, shown(path)) for op, path in step.denials}:
            return f"the violation is of {told}"
        return None
    if denials:
        return f"a violation: {denials}"
    if step.event is None:
        return None
    if not acts and step.event["op"] == "read" and step.event["kind"] == "open":
        path = step.event["path"]
        wanted = None if step.fails or path is None else shown(path)
        found = next((one for one in loose if wanted in (None, one)), None)
        if found is not None:
            loose.remove(found)
            return None
    if len(acts) == 1 and step.fails:
        return None if acts[0]["kind"] == step.event["kind"] else f"{acts}"
    if len(acts) != 1:
        return f"{len(acts)} events: {acts}"
    for name, value in step.event.items():
        wanted = shown(value) if isinstance(value, bytes) else value
        got = acts[0].get(name)
        if isinstance(value, bytes) and acts[0]["layer"] == "python":
            continue  # as it was asked for: the kernel did not tell of it
        if isinstance(value, bytes) and isinstance(got, str):
            got = nameless(got)
        if wanted is not None and got != wanted:
            return f"{name} of {acts[0]}"
    return None


def differences(
    case: Case, steps: list[Step], confined: Confined, times: dict[int, int]
) -> list[str]:
    """Compare operation by operation; the first difference comes first."""
    found = []
    for i, step in enumerate(steps):
        if step.verdict == "skip":
            continue
        got = confined.results[i]
        denied = step.verdict == "deny" and not case.observed
        wanted = ["error", 13] if denied else step.result
        problem = None
        if got != wanted:
            problem = f"gave {got}"
        else:
            problem = event_differs(step, confined.events.get(i, []), times.get(i, 1),
                                    confined.loose, case.observed)
        if problem is not None:
            found.append(
                f"{i}: {case.operations[i].source}\n   is to be: {step.verdict} "
                f"{wanted} {step.denials} {step.event}\n   but: {problem}\n"
                f"   events: {confined.events.get(i, [])}"
            )
    found += [f"elsewhere: {one}" for one in confined.others]
    return found


def play(
    case: Case, program: Path, environment: dict[str, str] | None = None
) -> tuple[list[str], list[Step]]:
    """Play a case on both sides."""
    environment = environment or {}
    policy = Policy(case.lists)
    fresh_tree(case)
    root = os.fsdecode(case.root)
    policy.bind({"{work}": root + "/w"})
    steps = play_plainly(case, policy)
    plain_tree = trees.told(case.root)
    times = {
        i: 1 + i % 3
        for i, step in enumerate(steps)
        if step.verdict == "deny" and not case.observed
    }
    operations = list(case.operations)
    for i, step in enumerate(steps):
        if step.verdict == "skip":
            operations[i] = Operation("skip", "None", "none", 0, operations[i].ask)
    played = replace(case, operations=operations)
    fresh_tree(case)
    confined = run_confined(played, program, times, environment)
    found = differences(played, steps, confined, times)
    confined_tree = trees.told(case.root)
    for name in sorted({*plain_tree, *confined_tree}):
        if plain_tree.get(name) != confined_tree.get(name):
            found.append(
                f"tree: {name}: {plain_tree.get(name)} became {confined_tree.get(name)}"
            )
    return found, steps


# ---- smaller


def smaller(
    case: Case, program: Path, environment: dict[str, str] | None = None, tries: int = 60
) -> tuple[Case, list[str]]:
    """Leave out what the first difference does not need."""
    found, _ = play(case, program, environment)
    last = int(found[0].partition(":")[0]) if found[0][0].isdigit() else len(case.operations)
    kept = case.operations[: last + 1]
    best = replace(case, operations=kept)
    size = max(1, len(best.operations) // 2)
    while size >= 1 and tries > 0:
        start = 0
        while start < len(best.operations) and tries > 0:
            kept = best.operations[:start] + best.operations[start + size :]
            trial = replace(best, operations=kept)
            tries -= 1
            try:
                now, _ = play(trial, program, environment)
            except AssertionError:
                now = []
            if now:
                best, found = trial, now
            else:
                start += size
        size = size // 2
    for key in list(best.lists):
        for one in list(best.lists[key]):
            lists = {k: [p for p in v if k != key or p != one] for k, v in best.lists.items()}
            trial = replace(best, lists=lists)
            try:
                now, _ = play(trial, program, environment)
            except AssertionError:
                now = []
            if now:
                best, found = trial, now
    return best, found


def play_seed(
    seed: int, count: int, program: Path, environment: dict[str, str], shrink: bool,
    observed: bool = False,
) -> str:  # fmt: skip
    """Play the case of a seed in a folder of its own; say what differs, as small as it gets."""
    base = Path(tempfile.mkdtemp(prefix="sandpit-oracle-", dir="/tmp"))
    try:
        case = make_case(seed, base, count, observed)
        found, _ = play(case, program, environment)
        if not found:
            return ""
        if shrink:
            case, found = smaller(case, program, environment)
        told = [f"seed {seed}, {count} operations", policies.toml(case.lists)]
        if shrink:
            told += [str(entry) for entry in case.entries]
            told += [one.source for one in case.operations if one.source != "None"]
        return "\n".join([*told, *found[:4]]).replace(str(root_below(base)), "{root}")
    finally:
        trees.open_folders(os.fsencode(base))
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    """Play seeds; exit code 1 at the first that differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="+", type=int)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--program", default=Path(sys.executable).parent / "sandpit")
    parser.add_argument("--force", default="", help="SANDPIT_FORCE")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--observe", action="store_true", help="observe the policy only")
    options = parser.parse_args()
    environment = {"SANDPIT_FORCE": options.force}
    for seed in options.seeds:
        told = play_seed(
            seed, options.count, Path(options.program), environment, options.shrink,
            options.observe,
        )  # fmt: skip
        if told:
            print(told)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
