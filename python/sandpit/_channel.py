"""One native program at work, and the conversation with it.

The program is asked over a socket and answers in lines of JSON. Nothing here starts a
thread or waits longer than it is told to, so that the same code serves plain callers,
threads and event loops.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Union, cast

from ._errors import InternalError, SandpitError, error_from_answer
from ._live import socket_pair
from ._program import find_program

if TYPE_CHECKING:
    from ._live import EventStream
    from ._spec import JSON

Answer = Union["dict[str, Any]", SandpitError]

_CHUNK = 1 << 18
_DIAGNOSTICS_MAX = 2000
# How long a program that has sent its answer, or was told to stop, may still take. It
# keeps its own deadlines far below this; only one that hangs is ended by force.
PATIENCE_S = 10.0


class Channel:
    """Starts the native program with a spec, and gives its answer once it is there."""

    def __init__(
        self,
        spec: dict[str, JSON],
        stdin: int,
        keep: object,
        events: EventStream | None = None,
    ) -> None:
        """Start the program.

        `stdin` is a descriptor, or `subprocess.PIPE`; `keep` lives until the program is
        gone, whoever drops this channel before. `events` is handed on by whoever waits.
        """
        program = find_program()
        capture = spec["capture"] is True
        self._reading = threading.Lock()
        self._listening = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._buffer = bytearray()
        self._scanned = 0
        self._killed_at: float | None = None
        self.pid: int | None = None
        self.answer: Answer | None = None
        self._pending: Answer | None = None
        ours, theirs = socket_pair()
        self._socket = ours
        self._events = events
        descriptors = [theirs.fileno()]
        if events is not None:
            descriptors.append(events.theirs.fileno())
            spec = {**spec, "events": events.theirs.fileno()}
        self._diagnostics = _open_diagnostics() if capture else None
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [program, "run-spec", str(theirs.fileno())],
                    stdin=stdin,
                    stdout=subprocess.DEVNULL if capture else None,
                    stderr=self._diagnostics,
                    pass_fds=descriptors,
                    # Ctrl-C on the terminal reaches the caller, who decides.
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            if events is not None:
                events.close()
            if self._diagnostics is not None:
                self._diagnostics.close()
            raise
        if events is not None:
            events.theirs.close()
        self._abandon = weakref.finalize(
            self, _abandon, ours, self._process, self._diagnostics, os.getpid(), keep
        )
        ours.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):
            # A program that is gone already says why as it ends the conversation.
            ours.sendall(json.dumps(spec).encode("ascii") + b"\n")
        ours.setblocking(False)

    @property
    def stdin(self) -> BinaryIO | None:
        """The pipe to the guest's standard input, if it was asked for."""
        return cast("BinaryIO | None", self._process.stdin)

    def duplicate(self) -> int | None:
        """Give a copy of the descriptor that becomes readable when there is news.

        The copy is the caller's to close. None if the conversation is over.
        """
        return _duplicate(self._socket)

    def duplicate_events(self) -> int | None:
        """Give the same for events; None if there are none any more."""
        return None if self._events is None else _duplicate(self._events)

    def wait(self, timeout: float | None) -> Answer | None:
        """Wait for the answer for so many seconds; None if it is not there by then.

        Events are handed on meanwhile, and all of them before the answer is given.
        """
        if self._events is not None and self._events.in_callback:
            raise RuntimeError("on_event cannot wait for the run that it is called by")
        end = None if timeout is None else time.monotonic() + timeout
        while self.answer is None:
            left = _left(end)
            if not self._reading.acquire(timeout=-1 if left is None else left):
                break
            try:
                if self.answer is None and not self._step(_left(end), self._events):
                    break
            finally:
                self._reading.release()
            if _left(end) == 0:
                break
        if self.answer is None:
            return self.poll()
        if self._events is not None:
            with self._reading:
                while self._events.take():
                    pass
                self._events.close()
        return self.answer

    def hand_on(self) -> bool | None:
        """Hand on one piece of the events that have come, without waiting.

        False: there are none. None: another thread is at it.
        """
        if self._events is None:
            return False
        if self._events.in_callback or not self._reading.acquire(blocking=False):
            return None
        try:
            return self._events.take()
        finally:
            self._reading.release()

    def look(self) -> bool | None:
        """Take in what has come, without waiting; say whether more may come.

        None: another thread is at it.
        """
        if self.answer is None:
            if not self._reading.acquire(blocking=False):
                return None
            try:
                while self.answer is None and self._step(0, None):
                    pass
            finally:
                self._reading.release()
        return self.answer is None

    def look_at_events(self) -> bool | None:
        """Hand on one piece of the events; say whether more may come.

        None: another thread is at it.
        """
        if self.hand_on() is None:
            return None
        return self._events is not None and self._events.fileno() >= 0

    def stop_events(self) -> None:
        """Hand no more events on."""
        if self._events is not None:
            self._events.stop()

    @property
    def event_error(self) -> BaseException | None:
        """What the callback for events raised."""
        return None if self._events is None else self._events.error

    @property
    def listening(self) -> bool:
        """Whether an answer may still come: neither there nor given up."""
        return self._abandon.alive

    def poll(self) -> Answer | None:
        """Take in what has come, without waiting; the answer if it is complete."""
        self.look()
        return self.answer

    def kill(self) -> None:
        """Ask the program to end the run; the answer comes as ever."""
        if self._killed_at is None and self.answer is None:
            self._killed_at = time.monotonic()
            with contextlib.suppress(OSError):
                self._socket.send(b'{"op":"kill"}\n')

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called, in whichever thread, once the answer is there."""
        with self._listening:
            if self.answer is None:
                self._listeners.append(listener)
                return
        listener()

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Take back a listener."""
        with self._listening, contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def press(self) -> None:
        """End a program by force that was told to stop long ago."""
        killed_at = self._killed_at
        if killed_at is not None and time.monotonic() - killed_at > PATIENCE_S:
            self._process.kill()

    def close(self) -> None:
        """End the run if it goes on, without waiting for it to be gone."""
        self._abandon()
        if self._events is not None:
            self._events.close()

    def _step(self, timeout: float | None, events: EventStream | None) -> bool:
        """Wait for news and take one piece of it in; False when none came in time.

        Given `events`, those are news too, and handed on.
        """
        wait_s = PATIENCE_S if timeout is None else min(timeout, PATIENCE_S)
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if events is not None and events.fileno() >= 0:
            poll.register(events, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(wait_s * 1000)]
        if not ready:
            # Not before: the answer may have come while a callback took its time.
            self.press()
            return timeout is None or wait_s < timeout
        answered = self._socket.fileno() in ready
        if events is not None and events.fileno() in ready:
            events.take()
        if answered:
            self._receive()
        return True

    def _receive(self) -> None:
        """Take in one piece; the end of the conversation completes the answer."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._finish()
            return
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._scanned = 0
            self._take_line(line)
        self._scanned = len(self._buffer)

    def _take_line(self, line: bytes) -> None:
        """Understand one line."""
        try:
            message = json.loads(line)
        except ValueError:
            self._pending = InternalError(
                "the native program sent a line that is no JSON"
            )
            return
        if message.get("event") == "started":
            self.pid = message.get("pid")
        elif "result" in message:
            self._pending = message["result"]
        elif "error" in message:
            self._pending = error_from_answer(message["error"])

    def _finish(self) -> None:
        """The program has closed its end: reap it and let the answer be known."""
        try:
            status: int | None = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        answer = self._pending
        if answer is None:
            answer = InternalError(self._explain_silence(status))
        self._abandon.detach()
        self._socket.close()
        if self._diagnostics is not None:
            self._diagnostics.close()
        with self._listening:
            self.answer = answer
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def _explain_silence(self, status: int | None) -> str:
        """Say what is known of a program that ended without an answer."""
        text = f"the native program ended with status {status} and gave no result"
        if self._diagnostics is not None and not self._diagnostics.closed:
            size = self._diagnostics.seek(0, os.SEEK_END)
            self._diagnostics.seek(max(0, size - _DIAGNOSTICS_MAX))
            said = self._diagnostics.read().decode("utf-8", "replace").strip()
            if said:
                text += f"; it said: {said}"
        return text


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _open_diagnostics() -> BinaryIO:
    """Open a nameless file for what the program itself says on standard error."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("sandpit-diagnostics"), "w+b", buffering=0)
    return cast("BinaryIO", tempfile.TemporaryFile(buffering=0))


def _duplicate(end: socket.socket | EventStream) -> int | None:
    try:
        return os.dup(end.fileno())
    except OSError:
        return None


def _abandon(
    connection: socket.socket,
    process: subprocess.Popen[bytes],
    diagnostics: BinaryIO | None,
    owner: int,
    keep: object,
) -> None:
    """Nobody waits for the answer any more: cancel the run and have it reaped.

    The shutdown reaches the program even if a fork of this process still holds a copy
    of the socket; such a fork itself only lets go of its copy.
    """
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    connection.close()
    if diagnostics is not None:
        diagnostics.close()
    if os.getpid() != owner:
        return
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is not None:
        return
    try:
        threading.Thread(
            target=_reap, args=(process, keep), name="sandpit-reaper", daemon=True
        ).start()
    except RuntimeError:
        # The interpreter is going down and starts no more threads.
        _reap(process, keep)


def _reap(process: subprocess.Popen[bytes], keep: object) -> None:
    """Wait for a program that was told to stop; keep what it works with till then."""
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
