"""What a trace says about files, the network and processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from . import _native

_EXITED, _KILLED = 1, 2  # enum sp_process_end


class FileUse(NamedTuple):
    """What was done to one file, and how often.

    These are the acts that the program asked for. Whether the kernel then did them is
    known only where sandpit did them for the program (`failed`).

    Attributes
    ----------
    path : as the trace has it.
    read : opened for reading only.
    write : opened for writing, or cut; it may have been there before or not.
    create : made where nothing was: a folder, a link, the new name of a renamed file.
    remove : removed, or renamed to another.
    change : its attributes.
    failed, denied : acts that came to nothing, or that the policy denied.
    by : `file:line` of the program's own lines, each with how many acts; at most eight.
    elsewhere : acts of lines that are not in `by` for want of room.
    """

    path: str
    read: int
    write: int
    create: int
    remove: int
    change: int
    failed: int
    denied: int
    by: dict[str, int]
    elsewhere: int


class AddressUse(NamedTuple):
    """What was done with one address or name, and how often.

    Attributes
    ----------
    name : `address:port`, a path (of a Unix socket), or a name that was looked up.
    host : the name by which the address was looked up; None where that is not known.
    resolve, connect, send, bind, listen : acts that were asked for.
    failed, denied : acts that came to nothing, or that the policy denied.
    by, elsewhere : as of a `FileUse`.
    """

    name: str
    host: str | None
    resolve: int
    connect: int
    send: int
    bind: int
    listen: int
    failed: int
    denied: int
    by: dict[str, int]
    elsewhere: int


@dataclass(frozen=True, eq=False)
class Process:
    """One process of a run.

    Attributes
    ----------
    pid : its number, as outside of the run.
    parent_pid : that of its parent; 0 where the trace does not tell.
    path, argv : the program that it became last; those of a fork are empty.
    started : False for a fork that went on in its parent's program.
    traced : Python in it is traced.
    start_ns, end_ns : since the start of the run. `end_ns` is None without an end.
    exit_code, signal : how it ended. Both are None without an end, and where nobody saw
        how: its parent may be told before the supervisor can ask.
    denied : how many acts of it were denied.
    parent : its parent, None where the trace does not tell.
    children : the processes that it started, in that order.
    """

    pid: int
    parent_pid: int
    path: str
    argv: list[str]
    argv_cut: bool
    started: bool
    traced: bool
    start_ns: int
    end_ns: int | None
    exit_code: int | None
    signal: int | None
    denied: int
    parent: Process | None = field(repr=False)
    children: list[Process] = field(repr=False)


def files_of(native: _native.Trace, within: bytes | None) -> list[FileUse]:
    """Ask for the files."""
    return [FileUse(row[0], *row[2:]) for row in native.files(within)]


def network_of(native: _native.Trace, within: bytes | None) -> list[AddressUse]:
    """Ask for names and addresses."""
    return [AddressUse(*row) for row in native.network(within)]


def processes_of(native: _native.Trace, within: bytes | None) -> list[Process]:
    """Ask for the processes, and link them."""
    made: list[Process] = []
    for row in native.processes(within):
        above, pid, parent_pid, start, end, ended, value, path, argv, *flags = row
        cut, started, traced, denied = flags
        one = Process(
            pid=pid,
            parent_pid=parent_pid,
            path=path,
            argv=argv,
            argv_cut=bool(cut),
            started=bool(started),
            traced=bool(traced),
            start_ns=start,
            end_ns=end if ended else None,
            exit_code=value if ended == _EXITED else None,
            signal=value if ended == _KILLED else None,
            denied=denied,
            parent=None if above < 0 else made[above],
            children=[],
        )
        if one.parent is not None:
            one.parent.children.append(one)
        made.append(one)
    return made
