"""Random policies and questions: what the matcher in C says is what the evaluator says.

    judging.py JUDGE [--seed N] [--count N]

JUDGE is the program made of tests/unit/policy/judge.c. Seeds are fixed, and one is fresh; a
failure prints the policy, the question and both answers.
"""

from __future__ import annotations

import argparse
import fnmatch
import ipaddress
import json
import random
import re
import subprocess
import sys

from evaluator import Policy, regex

PLACES = {"{work}": "/w", "{script}": "/s", "{home}": "/h", "{tmp}": "/t"}
PYTHON = {"read": ["/py", "/usr/lib"], "write": ["/py/lib"], "process": ["/py/bin/python3"]}
PARTS = ["a", "b", "ab", "ba", "c", "*", "?", "a*", "*b", "[ab]", "[!a]*", "**", "a**", "**b"]
NAMES = ["a", "b", "ab", "ba", "abab", "c", "\u00fc", "a b"]


def followed(path: bytes) -> bytes:
    """Follow the one link that there is: /link leads to /target."""
    if path == b"/link" or path.startswith(b"/link/"):
        return b"/target" + path[5:]
    return path


# ---- names: modules and variables


def name_fit(pattern: str, name: str, parts: bool) -> tuple[int, int]:
    """How specifically a pattern of names fits: 0 not, then any, folder, glob, exact."""
    if pattern == "*":
        return (1, 0)
    if not re.search(r"[*?[]", pattern):
        if pattern == name:
            return (4, 0)
        return (2, len(pattern)) if parts and name.startswith(pattern + ".") else (0, 0)
    match = regex(pattern.encode(), "")
    if match.fullmatch(name):
        return (3, 0)
    above = name
    while parts and "." in above:
        above = above.rpartition(".")[0]
        if match.fullmatch(above):
            return (2, len(above))
    return (0, 0)


def decide(fits: list[tuple[tuple, bool]], given: bool) -> bool:
    """The best fit holds, between equals the one that denies; else what the list says."""
    best = max((fit for fit, _ in fits if any(fit)), default=None)
    if best is None:
        return not given
    return all(allow for fit, allow in fits if fit == best)


def import_allowed(lists: dict, module: str) -> bool:
    fits = []
    for key, allow in (("allow", True), ("deny", False)):
        for pattern in lists.get(key, []):
            fit = name_fit(pattern, module, True)
            if allow and not re.search(r"[*?[]", pattern) and pattern.startswith(module + "."):
                fit = (5, 0)  # what leads to an allowed module is allowed
            fits.append((fit, allow))
    return decide(fits, "allow" in lists)


SECRET = re.compile(
    "TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY"
    "|(^|_)(AUTH|COOKIE|DSN|KEYS?|PASS|PROXY)(_|$)"
)
LOADING = ("LD_*", "MALLOC_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH",
           "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT")  # fmt: skip


def variable_allowed(lists: dict, name: str) -> bool:
    if "allow" not in lists:
        guarded = False
    else:
        guarded = bool(SECRET.search(name.upper())) or any(
            fnmatch.fnmatchcase(name, one) for one in LOADING
        )
    fits = []
    for key, allow in (("allow", True), ("deny", False)):
        for pattern in lists.get(key, []):
            if guarded and allow and pattern != name:
                continue  # a glob opens no secret
            fits.append((name_fit(pattern, name, False), allow))
    return decide(fits, "allow" in lists)


# ---- the network


def split_port(pattern: str) -> tuple[str, int]:
    if pattern.startswith("["):
        host, _, port = pattern[1:].partition("]")
        return host, int(port[1:].replace("*", "") or 0)
    if pattern.count(":") == 1:
        host, _, port = pattern.partition(":")
        return host, 0 if port == "*" else int(port)
    return pattern, 0


def end_fit(pattern: str, address, port: int, hosts: list[str]) -> tuple:
    """Host or address; a glob of hosts; a longer range; a shorter one; loopback; any. With a
    port before the same without."""
    host, wanted = split_port(pattern)
    if wanted not in (0, port):
        return (0, 0, 0)
    with_port = int(wanted != 0)
    if host == "*":
        return (1, 0, with_port)
    if host in ("loopback", "localhost"):
        near = address.is_loopback if address is not None else hosts == ["localhost"]
        return (2, 0, with_port) if near else (0, 0, 0)
    try:
        network = ipaddress.ip_network(host, strict=False)
    except ValueError:
        named = host.lower().rstrip(".")
        if re.search(r"[*?[]", named):
            found = any(regex(named.encode(), "").fullmatch(one) for one in hosts)
            return (4, 0, with_port) if found else (0, 0, 0)
        return (5, 0, with_port) if named in hosts else (0, 0, 0)
    if address is None or address.version != network.version or address not in network:
        return (0, 0, 0)
    if network.prefixlen == network.max_prefixlen:
        return (5, 0, with_port)
    return (3, network.prefixlen + (96 if network.version == 4 else 0), with_port)


def end_allowed(lists: dict, address: str, port: int, hosts: list[str]) -> bool:
    where = ipaddress.ip_address(address)
    fits = [
        (end_fit(pattern, where, port, hosts), key == "allow")
        for key in lists
        for pattern in lists[key]
        if not pattern.startswith("unix:")
    ]
    return decide(fits, "allow" in lists)


def host_allowed(lists: dict, host: str) -> bool:
    """A name is looked up where some port of it is allowed."""
    ports = {split_port(p)[1] for key in lists for p in lists[key] if p[:5] != "unix:"}

    def allowed(port: int) -> bool:
        fits = []
        for key in lists:
            for pattern in lists[key]:
                if pattern.startswith("unix:") or is_address(split_port(pattern)[0]):
                    continue
                fits.append((end_fit(pattern, None, port, [host]), key == "allow"))
        return decide(fits, "allow" in lists)

    return any(allowed(port) for port in {*ports, 1})


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


# ---- random policies and questions


def path_pattern(rng: random.Random, process: bool) -> str:
    if process and rng.random() < 0.2:
        return rng.choice(["git", "{python}", "nothing"])
    parts = "/".join(rng.choice(PARTS) for _ in range(rng.randint(1, 4)))
    start = rng.choices(["/", "**/", "{work}/", "{home}/", "/link/", "/py/", "~/"],
                        [5, 3, 3, 1, 1, 1, 1])[0]  # fmt: skip
    if rng.random() < 0.05:
        return rng.choice(["*", "{python}", "{work}", "/"])
    return start + parts + rng.choice(["", "", "", "", "/", "/**"])


def path_target(rng: random.Random) -> str:
    start = rng.choice(["", "", "/w", "/w", "/h", "/target", "/py", "/usr/bin"])
    parts = [rng.choice([*NAMES, "git", "lib"]) for _ in range(rng.randint(1, 5))]
    return start + "/" + "/".join(parts)


def module_text(rng: random.Random, glob: bool) -> str:
    names = ["a", "b", "ab", "x", "xml"] + (["*", "a*", "?", "[ab]", "*b"] if glob else [])
    return ".".join(rng.choice(names) for _ in range(rng.randint(1, 3)))


def variable_text(rng: random.Random, glob: bool) -> str:
    names = ["APP", "KEY", "LC", "A", "TOKENS", "LD", "MODE", "my"]
    if glob:
        names += ["*", "A*", "?"]
    return "_".join(rng.choice(names) for _ in range(rng.randint(1, 3)))


V4 = ["10.0.0.1", "10.0.0.2", "10.1.2.3", "127.0.0.1", "127.9.9.9", "192.0.2.7"]
V6 = ["::1", "2001:db8::1", "2001:db8:1::2"]
HOSTS = ["api.example.com", "x.example.com", "example.com", "localhost", "other.org"]


def end_pattern(rng: random.Random) -> str:
    port = rng.choice(["", "", ":443", ":80", ":*"])
    chance = rng.random()
    if chance < 0.25:
        return rng.choice(V4) + port
    if chance < 0.45:
        bits = rng.choice([0, 1, 8, 9, 16, 31, 32])
        return f"{ipaddress.ip_network((rng.choice(V4), bits), strict=False)}{port}"
    if chance < 0.6:
        text = rng.choice(V6)
        bits = rng.choice([None, None, 0, 32, 33, 64, 127, 128])
        if bits is not None:
            text = str(ipaddress.ip_network((text, bits), strict=False))
        return f"[{text}]{port}" if port else text
    if chance < 0.72:
        return rng.choice(["loopback", "*"]) + port
    if chance < 0.9:
        return rng.choice([*HOSTS, "*.example.com", "api.*", "?.example.com", "Example.COM."]) + port
    return rng.choice(["unix:/w/a", "unix:/w/a/b", "unix:@a", "unix:@a*", "unix:/w/*b"])


def unix_fit(pattern: str, name: str) -> tuple:
    text = pattern[5:]
    if text.startswith("@") or name.startswith("@"):
        if text.startswith("@") and regex(text.encode(), "").fullmatch(name):
            return (5, 0)
        return (0, 0)
    policy = Policy({"allow_read": [text]})
    policy.bind({}, followed)
    return max(policy.fits(name.encode()), default=(0, 0))


def unix_allowed(lists: dict, name: str) -> bool:
    fits = []
    for key in lists:
        for pattern in lists[key]:
            if pattern in ("*", "*:*"):
                fits.append(((1, 0), key == "allow"))
            elif pattern.startswith("unix:"):
                fits.append((unix_fit(pattern, name), key == "allow"))
    return decide(fits, "allow" in lists)


def some(rng: random.Random, one) -> list[str]:
    return [one() for _ in range(rng.randint(1, 4))]


def questions(rng: random.Random) -> tuple[str, list[tuple[str, bool]]]:
    """A policy, and questions with the evaluator's answers."""
    section = rng.choice(["fs", "fs", "process", "imports", "env", "network", "network"])
    one = {
        "fs": lambda: path_pattern(rng, False),
        "process": lambda: path_pattern(rng, True),
        "imports": lambda: module_text(rng, True),
        "env": lambda: variable_text(rng, True),
        "network": lambda: end_pattern(rng),
    }[section]
    keys = ["allow", "deny"]
    if section == "fs":
        keys = ["allow_read", "deny_read", "allow_write", "deny_write"]
    lists = {key: some(rng, one) for key in keys if rng.random() < 0.65}
    text = f"[{section}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in lists.items())
    asked = []
    for _ in range(20):
        if section in ("fs", "process"):
            target = path_target(rng)
            kinds = ["read", "write"] if section == "fs" else ["process"]
            what = rng.choice(kinds)
            policy = path_policy(section, lists)
            word = "run" if what == "process" else what
            asked.append((f"{word} {target}", policy.allows(what, target.encode())))
        elif section == "imports":
            target = module_text(rng, False)
            asked.append((f"import {target}", import_allowed(lists, target)))
        elif section == "env":
            target = variable_text(rng, False)
            asked.append((f"env {target}", variable_allowed(lists, target)))
        elif rng.random() < 0.2:
            target = rng.choice(["/w/a", "/w/a/b", "/w/b", "/w/a/ab", "@a", "@ab", "@b"])
            asked.append((f"connect {target}", unix_allowed(lists, target)))
        elif rng.random() < 0.2:
            target = rng.choice(HOSTS)
            asked.append((f"resolve {target}", host_allowed(lists, target)))
        else:
            address, port = rng.choice(V4 + V6), rng.choice([80, 443, 5000])
            hosts = rng.choice([[], [], [rng.choice(HOSTS)]])
            words = " ".join([address, str(port), *hosts])
            asked.append((f"connect {words}", end_allowed(lists, address, port, hosts)))
    return text, asked


def path_policy(section: str, lists: dict) -> Policy:
    if section == "process":
        lists = {f"{key}_process": named(key, value) for key, value in lists.items()}
    policy = Policy(lists)
    policy.bind({**PLACES, "~/": "/h/"}, followed, PYTHON)
    return policy


def named(key: str, patterns: list[str]) -> list[str]:
    """A bare name is the file that it means, and under deny that name anywhere."""
    found = []
    for pattern in patterns:
        if "/" in pattern or pattern[0] in "{*":
            found.append(pattern)
            continue
        if pattern == "git":
            found.append("/usr/bin/git")
        if key == "deny":
            found.append(f"**/{pattern}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("judge")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--count", type=int, default=5000)
    options = parser.parse_args()
    seeds = options.seed or [1, random.SystemRandom().randrange(10**6, 10**9)]
    for seed in seeds:
        rng = random.Random(seed)
        cases = [questions(rng) for _ in range(options.count // 20)]
        lines = []
        for text, asked in cases:
            lines.append(f"policy {len(text.encode())}\n{text}")
            lines += [f"{question}\n" for question, _ in asked]
        done = subprocess.run(
            [options.judge], input="".join(lines).encode(), capture_output=True, check=True
        )
        answers = iter(done.stdout.decode().splitlines())
        wrong = 0
        for text, asked in cases:
            first = next(answers)
            if first != "policy":
                raise SystemExit(f"seed {seed}: {first}\n{text}")
            for question, allowed in asked:
                got = next(answers)
                if got.startswith("allow") != allowed:
                    wrong += 1
                    if wrong <= 5:
                        print(f"seed {seed}\n{text}{question}: {got}, not {allowed}")
        if wrong:
            print(f"seed {seed}: {wrong} answers differ")
            return 1
        print(f"seed {seed}: {options.count} answers agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
