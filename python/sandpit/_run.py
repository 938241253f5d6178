"""Running programs: `run`, `run_string`, `start`, and the `Run` that is going on."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import TYPE_CHECKING, Any, BinaryIO

from ._channel import PATIENCE_S, Channel
from ._errors import SandpitError
from ._job import Job, check_files, encode_code
from ._live import check_on_event
from ._program import require_platform
from ._spec import DEFAULT_CAPTURE_MAX, check_options, check_path
from ._stdin import check_stdin, open_stdin

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable, Generator, Iterable, Mapping
    from types import TracebackType
    from typing import Literal

    from ._channel import Answer
    from ._folder import Content
    from ._grants import GrantKind
    from ._live import EventStream, OnEvent
    from ._policy import Policy
    from ._result import Result
    from ._spec import Calls, StrPath
    from ._stdin import Stdin


# So long an event loop leaves events to another thread that hands them on.
_BUSY_S = 0.05


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came while waiting for a run; the run was ended.

    Attributes
    ----------
    result : what the run was until then, with its trace; None if there is none.
    """

    def __init__(self, result: Result | None) -> None:
        """Make the exception with what is left of the run."""
        super().__init__("interrupted; the run was ended")
        self.result = result


class Run:
    """A run that is going on, or was. `start` makes it.

    It can be waited for by `wait`, or awaited in asyncio; as a context manager it ends
    the run at the end of the block. Threads may share it.
    """

    def __init__(
        self, job: Job, stdin: Stdin, events: EventStream | None = None
    ) -> None:
        """Start the job; callers use `start`."""
        self._job = job
        self._outcome: Result | SandpitError | None = None
        with open_stdin(stdin) as descriptor:
            self._channel = Channel(job.spec, descriptor, keep=job, events=events)

    @property
    def stdin(self) -> BinaryIO | None:
        """The writing end of the guest's standard input, if `stdin=PIPE` was given.

        The guest sees the end of its input once this is closed.
        """
        return self._channel.stdin

    @property
    def pid(self) -> int | None:
        """The guest's process id once it has started; None before."""
        self._channel.poll()
        return self._channel.pid

    @property
    def done(self) -> bool:
        """Whether the run has ended, so that `wait` returns at once."""
        return self._outcome is not None or self._channel.poll() is not None

    def wait(self, timeout: float | None = None) -> Result:
        """Wait for the end of the run and give its result.

        Parameters
        ----------
        timeout : seconds to wait at most. The run itself goes on after that; its own
            limit is the `timeout` it was started with.

        Returns
        -------
        Result : the same one at each call.

        Raises
        ------
        TimeoutError : the run goes on.
        SandpitError : it could not be started or held; see `run`.
        KeyboardInterrupt : Ctrl-C came (an `Interrupted`); the run was ended.
        Whatever `on_event` raises; the run was ended, and a further `wait` gives its
        result. In `on_event` itself: RuntimeError.
        """
        try:
            if self._outcome is None:
                answer = self._channel.wait(timeout)
                if answer is None:
                    raise TimeoutError(f"the run goes on after {timeout} s")
                self._settle(answer)
        except KeyboardInterrupt:
            raise Interrupted(self._stop()) from None
        except BaseException as error:
            if error is self._channel.event_error:
                self._stop()
            raise
        return self._get()

    def kill(self) -> None:
        """End the run with all its processes; `wait` then gives status `cancelled`.

        What it printed and its trace up to then are kept. Does nothing once it ended.
        """
        self._channel.kill()

    def __await__(self) -> Generator[object, None, Result]:
        """Wait without blocking the event loop; cancelling the task ends the run."""
        return self._await().__await__()

    def __enter__(self) -> Run:
        """Give the run itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run if it goes on."""
        self._stop()

    async def __aenter__(self) -> Run:
        """Give the run itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run if it goes on, without blocking the event loop."""
        await self._stop_async()
        self._close_stdin()

    def __repr__(self) -> str:
        """Say what runs and how far it is."""
        if isinstance(self._outcome, SandpitError):
            state = self._outcome.slug
        elif self._outcome is not None:
            state = self._outcome.status
        else:
            state = "ended" if self._channel.answer is not None else "running"
        return f"<sandpit.Run {self._job.program!r} {state}>"

    def __del__(self) -> None:
        """Warn of a run that nobody ended; its channel cancels it.

        One that goes with a reference cycle finds its channel given up already.
        """
        channel = getattr(self, "_channel", None)
        if channel is None or channel.answer is not None:
            return
        if not channel.listening or channel.poll() is None:
            warnings.warn(
                f"run dropped before its end: {self!r}",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            channel.close()

    async def _await(self) -> Result:
        import asyncio

        try:
            await self._finished()
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            if cancelled or error is self._channel.event_error:
                await self._stop_async()
            raise
        return self._get()

    async def _stop_async(self) -> None:
        self._channel.stop_events()
        self.kill()
        with contextlib.suppress(SandpitError):
            await self._finished()

    async def _finished(self) -> None:
        """Return once the answer is there, and the events before it were handed on.

        Copies of the channel's descriptors are watched, so that a thread that finishes
        the same run cannot close them under the event loop.
        """
        if self._channel.poll() is None:
            import asyncio  # not at the top: it is half the time of `import sandpit`

            loop = asyncio.get_running_loop()
            ended = asyncio.Event()

            def wake() -> None:
                with contextlib.suppress(RuntimeError):  # the loop was closed
                    loop.call_soon_threadsafe(ended.set)

            self._channel.add_listener(wake)
            channel = self._channel
            answer = _Watched(channel.duplicate(), channel.look, loop, ended.set)
            events = _Watched(
                channel.duplicate_events(), channel.look_at_events, loop, ended.set
            )
            try:
                while not ended.is_set():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(ended.wait(), PATIENCE_S)
                    self._channel.press()
            finally:
                self._channel.remove_listener(wake)
                answer.close()
                events.close()
            for error in (answer.error, events.error):
                if error is not None:
                    raise error
        await self._hand_on_rest()
        self._settle(self._channel.answer)

    async def _hand_on_rest(self) -> None:
        """Hand on what came last; while another thread is at it, wait for that."""
        while (some := self._channel.hand_on()) is not False:
            import asyncio

            await asyncio.sleep(0 if some else _BUSY_S)

    def _stop(self) -> Result | None:
        """End the run, wait for that, and give what is left of it."""
        self._channel.stop_events()
        self.kill()
        self._close_stdin()
        self._settle(self._channel.wait(None))
        return None if isinstance(self._outcome, SandpitError) else self._outcome

    def _close_stdin(self) -> None:
        if self._channel.stdin is not None:
            with contextlib.suppress(OSError):
                self._channel.stdin.close()

    def _settle(self, answer: Answer | None) -> None:
        """Turn the answer into the outcome, once."""
        assert answer is not None
        self._outcome = self._job.finish(answer)

    def _get(self) -> Result:
        outcome = self._outcome
        if isinstance(outcome, SandpitError):
            raise outcome.with_traceback(None)
        assert outcome is not None
        return outcome


class _Watched:
    """A descriptor of a run's, watched by an event loop for as long as it waits.

    `look` takes in what came; it says whether more may come, or None where another
    thread is at it. What it raises is kept in `error`, and `failed` is called.
    """

    def __init__(
        self,
        descriptor: int | None,
        look: Callable[[], bool | None],
        loop: AbstractEventLoop,
        failed: Callable[[], None],
    ) -> None:
        """Begin to watch; the descriptor is closed at the end."""
        self._descriptor = descriptor
        self._look = look
        self._loop = loop
        self._failed = failed
        self._later: TimerHandle | None = None
        self.error: BaseException | None = None
        self._watch()

    def close(self) -> None:
        """Watch no more."""
        if self._later is not None:
            self._later.cancel()
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _watch(self) -> None:
        if self._descriptor is not None:
            self._loop.add_reader(self._descriptor, self._ready)

    def _ready(self) -> None:
        assert self._descriptor is not None
        try:
            more = self._look()
        except BaseException as error:
            self.error = error
            self._failed()
            more = False
        if not more:
            self._loop.remove_reader(self._descriptor)
        if more is None:
            self._later = self._loop.call_later(_BUSY_S, self._watch)


def start(
    script: StrPath,
    *,
    args: Iterable[StrPath] = (),
    module: bool = False,
    policy: StrPath | Mapping[str, Any] | Policy | None = None,
    allow: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    deny: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    observe: bool = False,
    stdin: Stdin = None,
    env: Mapping[str, str] | None = None,
    cwd: StrPath | None = None,
    files: Mapping[str, Content] | None = None,
    timeout: float | None = None,
    limits: Mapping[str, str | float] | None = None,
    calls: Calls | None = None,
    trace: StrPath | Literal[False] | None = None,
    sign: StrPath | None = None,
    python: StrPath | None = None,
    allow_degraded: Iterable[str] = (),
    capture: bool = True,
    capture_max: int = DEFAULT_CAPTURE_MAX,
    on_event: OnEvent | None = None,
) -> Run:
    """Start a script under a policy and return at once.

    Parameters
    ----------
    stdin : as for `run`, or `PIPE`: then `Run.stdin` is where to write the input.
    on_event : as for `run`; called while `Run.wait` waits, or by the event loop while
        the run is awaited.

    The other parameters are those of `run`.

    Returns
    -------
    Run : wait for it with `run.wait()`, or `await run` in asyncio.

    Raises
    ------
    HostError : the native program is missing, or this is Windows. Whatever else can
        go wrong is raised by `Run.wait`.
    TypeError, ValueError : an argument is not what it must be.

    Example
    -------
    >>> import sandpit
    >>> with sandpit.start("-", stdin=sandpit.PIPE) as run:
    ...     _ = run.stdin.write(b"print(6 * 7)")
    ...     run.stdin.close()
    ...     run.wait().stdout
    '42\\n'
    """
    require_platform()
    options = check_options(
        args=args,
        policy=policy,
        allow=allow,
        deny=deny,
        observe=observe,
        timeout=timeout,
        limits=limits,
        calls=calls,
        trace=trace,
        sign=sign,
        python=python,
        env=env,
        cwd=cwd,
        allow_degraded=allow_degraded,
        capture=capture,
        capture_max=capture_max,
    )
    check_stdin(stdin, pipe=True)
    check_files(files)
    if module:
        if not isinstance(script, str):
            raise TypeError(f"a module is named by a str, not {type(script).__name__}")
        kind = "module"
    else:
        kind = "stdin" if script == "-" else "script"
    program = check_path("script", script)
    events = check_on_event(on_event)
    return Run(Job(kind, program, options, code=None, files=files), stdin, events)


def run(
    script: StrPath,
    *,
    args: Iterable[StrPath] = (),
    module: bool = False,
    policy: StrPath | Mapping[str, Any] | Policy | None = None,
    allow: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    deny: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    observe: bool = False,
    stdin: Stdin = None,
    env: Mapping[str, str] | None = None,
    cwd: StrPath | None = None,
    files: Mapping[str, Content] | None = None,
    timeout: float | None = None,
    limits: Mapping[str, str | float] | None = None,
    calls: Calls | None = None,
    trace: StrPath | Literal[False] | None = None,
    sign: StrPath | None = None,
    python: StrPath | None = None,
    allow_degraded: Iterable[str] = (),
    capture: bool = True,
    capture_max: int = DEFAULT_CAPTURE_MAX,
    on_event: OnEvent | None = None,
) -> Result:
    """Run a script under a policy and return what happened.

    It runs in the caller's folder as `python script args` would, but for what the
    policy forbids. What it does, failing included, is data in the result.

    Parameters
    ----------
    script : path of the script, folder or zip file, as `python` takes it; with
        `module=True` the name of a module, as for `python -m`. "-" is the program
        that is read from `stdin`.
    args : the program's own arguments.
    policy : name of a built-in policy, path of a file in TOML, a dict of the same
        grammar, or a `Policy`; None means the default one. A text is a path when it
        has a slash in it or ends in ".toml".
    allow, deny : what this run may and may not do, before all that the policy says:
        lists of patterns by `read`, `write` (paths), `net` (as "example.com:443"),
        `run` (programs), `import` (modules), `env` (variables). In a text `*` and the
        like are wildcards, relative paths count from the caller's folder; a path object
        is just that path.
    observe : record what the policy's rules would deny, and deny none of it.
    stdin : what the program reads: text, bytes, an open file or its descriptor. None
        is an empty input.
    env : the environment of the program, handed down as given; None hands down of the
        caller's what the policy lists.
    cwd : the working folder; a relative `script` is looked for there. None is the
        caller's, or, when `files` is given, a fresh private one, and a `script` that
        is not among the files is the one in the caller's folder.
    files : files to put in the working folder first, by name.
    timeout : seconds of wall time, > 0; passing it is a result with status `timeout`.
    limits : what the run may use, by name as in a policy: `wall`, `cpu` (seconds, or a
        text as "500ms"), `memory`, `file_size`, `disk`, `output`, `trace` (bytes, or a
        text as "64MiB"), `processes`, `open_files`. They win over the policy's.
    calls : which function calls are recorded: `off`, `first`, `folded` or `all`. None
        is what the policy says, else `folded`.
    trace : where to write the trace, compressed if the name ends in `.zst`; None keeps
        it in a private folder that goes with the result, False writes none.
    sign : file of the private key to sign the trace with, which the program can neither
        read nor change; `sandpit keygen` makes one.
    python : the interpreter; None is the one that runs this.
    allow_degraded : abilities that this machine may lack, as `HostError.missing` names
        them; the run then goes on without what they protect.
    capture : whether output stands in the result; if not, it goes where the caller's
        own goes.
    capture_max : bytes of each stream that are kept; more is counted and cut.
    on_event : called with each event of the trace as a dict, in order and while the
        program runs, by the thread that waits for the run. What it raises ends the
        run. A slow one holds nothing up, but misses events: a `lost` event says how
        many.

    Returns
    -------
    Result : status, exit code, output, violations, trace.

    Raises
    ------
    PolicyError : the policy is unknown or invalid.
    HostError : this machine cannot enforce it (see `missing`), or lacks the program.
    NotFoundError : the script, the interpreter or the working folder is not there.
    TraceError : the trace cannot be written where it was asked for.
    UsageError : the program refuses a combination of options.
    TypeError, ValueError : an argument is not what it must be.
    KeyboardInterrupt : Ctrl-C (an `Interrupted`, with the result so far).
    Whatever `on_event` raises.

    Example
    -------
    >>> import sandpit
    >>> result = sandpit.run("platform", module=True, policy="trace-only")
    >>> result.status, result.exit_code
    ('ok', 0)
    """
    check_stdin(stdin, pipe=False)
    return start(
        script,
        args=args,
        module=module,
        policy=policy,
        allow=allow,
        deny=deny,
        observe=observe,
        stdin=stdin,
        env=env,
        cwd=cwd,
        files=files,
        timeout=timeout,
        limits=limits,
        calls=calls,
        trace=trace,
        sign=sign,
        python=python,
        allow_degraded=allow_degraded,
        capture=capture,
        capture_max=capture_max,
        on_event=on_event,
    ).wait()


def start_string(
    code: str | bytes,
    *,
    args: Iterable[StrPath] = (),
    policy: StrPath | Mapping[str, Any] | Policy | None = None,
    allow: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    deny: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    observe: bool = False,
    stdin: Stdin = None,
    env: Mapping[str, str] | None = None,
    cwd: StrPath | None = None,
    files: Mapping[str, Content] | None = None,
    timeout: float | None = None,
    limits: Mapping[str, str | float] | None = None,
    calls: Calls | None = None,
    trace: StrPath | Literal[False] | None = None,
    sign: StrPath | None = None,
    python: StrPath | None = None,
    allow_degraded: Iterable[str] = (),
    capture: bool = True,
    capture_max: int = DEFAULT_CAPTURE_MAX,
    on_event: OnEvent | None = None,
) -> Run:
    """Start program text under a policy and return at once.

    It is to `run_string` what `start` is to `run`.

    Example
    -------
    >>> import asyncio, sandpit
    >>> async def main():
    ...     return await sandpit.start_string("print('hello')", policy="no-network")
    >>> asyncio.run(main()).stdout
    'hello\\n'
    """
    require_platform()
    options = check_options(
        args=args,
        policy=policy,
        allow=allow,
        deny=deny,
        observe=observe,
        timeout=timeout,
        limits=limits,
        calls=calls,
        trace=trace,
        sign=sign,
        python=python,
        env=env,
        cwd=cwd,
        allow_degraded=allow_degraded,
        capture=capture,
        capture_max=capture_max,
    )
    check_stdin(stdin, pipe=True)
    check_files(files)
    text = encode_code(code)
    events = check_on_event(on_event)
    job = Job("script", "main.py", options, code=text, files=files)
    return Run(job, stdin, events)


def run_string(
    code: str | bytes,
    *,
    args: Iterable[StrPath] = (),
    policy: StrPath | Mapping[str, Any] | Policy | None = None,
    allow: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    deny: Mapping[GrantKind, Iterable[StrPath]] | None = None,
    observe: bool = False,
    stdin: Stdin = None,
    env: Mapping[str, str] | None = None,
    cwd: StrPath | None = None,
    files: Mapping[str, Content] | None = None,
    timeout: float | None = None,
    limits: Mapping[str, str | float] | None = None,
    calls: Calls | None = None,
    trace: StrPath | Literal[False] | None = None,
    sign: StrPath | None = None,
    python: StrPath | None = None,
    allow_degraded: Iterable[str] = (),
    capture: bool = True,
    capture_max: int = DEFAULT_CAPTURE_MAX,
    on_event: OnEvent | None = None,
) -> Result:
    """Run program text under a policy and return what happened.

    The text becomes a file `main.py` in a fresh private folder, which is the working
    folder; `Result.read` gets at what the program left there. Folder and trace are
    removed together with the result.

    Parameters
    ----------
    code : the program, as text or as the bytes of its file.
    files : files to put beside it first, by name.
    cwd : a folder of the caller's to work in instead. The program's file is put there
        under a name that is not taken, and removed after the run.

    The other parameters, what is returned and what is raised are those of `run`.

    Example
    -------
    >>> import sandpit
    >>> result = sandpit.run_string(
    ...     "open('out.txt', 'w').write(open('in.txt').read().upper())",
    ...     files={"in.txt": "some text"},
    ...     policy="no-network",
    ... )
    >>> result.exit_code, result.read("out.txt")
    (0, b'SOME TEXT')
    """
    check_stdin(stdin, pipe=False)
    return start_string(
        code,
        args=args,
        policy=policy,
        allow=allow,
        deny=deny,
        observe=observe,
        stdin=stdin,
        env=env,
        cwd=cwd,
        files=files,
        timeout=timeout,
        limits=limits,
        calls=calls,
        trace=trace,
        sign=sign,
        python=python,
        allow_degraded=allow_degraded,
        capture=capture,
        capture_max=capture_max,
        on_event=on_event,
    ).wait()
