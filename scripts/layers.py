"""The layer rule: who may include whom. ARCHITECTURE.md says why."""

from __future__ import annotations

# Each layer and what it is built on directly; what those are built on comes with them.
BUILT_ON: dict[str, tuple[str, ...]] = {
    "base": (),
    "event": ("base",),
    "ring": ("base",),
    "policy": ("event",),
    "trace": ("event",),
    "sys": ("base",),
    "seal": ("policy", "sys"),
    "plan": ("seal", "ring"),
    "launch": ("plan",),
    "supervise": ("launch", "trace"),
    "run": ("supervise",),
    "read": ("trace", "policy"),
    "agent": ("event", "policy", "ring"),
    "resolve": ("ring",),
    "cli": ("run", "read"),
    "binding": ("read",),
}


def below(layer: str) -> set[str]:
    """Every layer that this one may include, itself among them."""
    seen = {layer}
    for lower in BUILT_ON[layer]:
        seen |= below(lower)
    return seen
