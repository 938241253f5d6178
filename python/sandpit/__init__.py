"""Run untrusted Python under a policy and keep a full record of what it did.

>>> import sandpit
>>> result = sandpit.run_string("import requests", policy="no-network")
>>> result.exit_code, result.violations[0].target
(1, 'requests')
"""

from __future__ import annotations

from ._calls import CallGraph, CallNode, CallRoot, CallTree
from ._errors import (
    HostError,
    InternalError,
    NotFoundError,
    PolicyError,
    PolicyProblem,
    SandpitError,
    TraceError,
    UsageError,
)
from ._events import Events
from ._policy import Policy
from ._result import (
    AppliedPolicy,
    ExceptionInfo,
    FileChanges,
    Grant,
    Result,
    Violation,
)
from ._run import Interrupted, Run, run, run_string, start, start_string
from ._stdin import PIPE
from ._tables import AddressUse, FileUse, Process
from ._trace import Trace, load

__all__ = [
    "PIPE",
    "AddressUse",
    "AppliedPolicy",
    "CallGraph",
    "CallNode",
    "CallRoot",
    "CallTree",
    "Events",
    "ExceptionInfo",
    "FileChanges",
    "FileUse",
    "Grant",
    "HostError",
    "InternalError",
    "Interrupted",
    "NotFoundError",
    "Policy",
    "PolicyError",
    "PolicyProblem",
    "Process",
    "Result",
    "Run",
    "SandpitError",
    "Trace",
    "TraceError",
    "UsageError",
    "Violation",
    "load",
    "run",
    "run_string",
    "start",
    "start_string",
]
