"""Events while the program runs: from the native program's stream to a callback."""

from __future__ import annotations

import socket
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

from . import _native

if TYPE_CHECKING:
    from ._events import Event

OnEvent = Callable[["Event"], object]

# A reader that takes little at a time lets go of an event loop in between.
_CHUNK = 1 << 14


class EventStream:
    """The reading end of a run's event stream, and the callback that gets the events.

    Nothing here waits. The events are handed on one by one, so that no more of them are
    held than one piece that was read has in it; what the callback is too slow for, the
    native program drops and tells of.
    """

    def __init__(self, callback: OnEvent) -> None:
        """Make the connection; `theirs` is for the native program."""
        self._callback: OnEvent | None = callback
        self._feed = _native.Feed()
        self._thread: int | None = None
        self.error: BaseException | None = None
        ours, theirs = socket_pair()
        ours.setblocking(False)
        self.theirs = theirs
        self._ours = ours
        self._close = weakref.finalize(self, _close, ours, theirs)

    def fileno(self) -> int:
        """Give the descriptor that becomes readable when there are events; -1: over."""
        return self._ours.fileno()

    @property
    def in_callback(self) -> bool:
        """Whether this thread is in the callback at this moment."""
        return self._thread == threading.get_ident()

    def take(self) -> bool:
        """Read one piece and hand its events on; False when there is none.

        What the callback raises is kept in `error`, and ends it all.
        """
        if self.fileno() < 0:
            return False
        try:
            data = self._ours.recv(_CHUNK)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return False
        self._thread = threading.get_ident()
        try:
            self._hand_on(data)
        except BaseException as error:
            self.error = error
            self.stop()
            raise
        finally:
            self._thread = None
        return True

    def stop(self) -> None:
        """Call nobody any more; what comes is dropped."""
        self._callback = None

    def close(self) -> None:
        """Let go of the connection."""
        self._close()

    def _hand_on(self, data: bytes) -> None:
        if self._callback is None:
            return
        self._feed.put(data)
        for event in self._feed:
            callback = self._callback
            if callback is None:
                return
            callback(event)


def check_on_event(on_event: object) -> EventStream | None:
    """Give the stream for an `on_event` option; TypeError if it cannot be called."""
    if on_event is None:
        return None
    if not callable(on_event):
        raise TypeError(f"on_event must be callable, not {type(on_event).__name__}")
    import inspect

    if inspect.iscoroutinefunction(on_event):
        raise TypeError("on_event must be a plain function, not a coroutine function")
    return EventStream(on_event)


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Make a connection; the program's end never has a standard stream's number."""
    ours, theirs = socket.socketpair()
    kept = []
    while theirs.fileno() <= 2:
        # The caller runs with a standard stream closed.
        kept.append(theirs)
        theirs = theirs.dup()
    for low in kept:
        low.close()
    return ours, theirs


def _close(*ends: Any) -> None:
    for end in ends:
        end.close()
