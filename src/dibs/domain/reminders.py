"""When an owner is reminded that a lease ends."""

from __future__ import annotations

SHARE = 0.2
"""How much of the lease is left when its owner is reminded."""
LEAST_SECONDS = 5 * 60
"""How long before the end a reminder comes at least: time enough to read it and to press Renew."""
MOST_SECONDS = 60 * 60
SHORTEST_LEASE_SECONDS = 15 * 60
"""Leases shorter than this are over before a reminder is of use."""


def reminder_lead(lease_seconds: float) -> float | None:
    """How many seconds before the end of a lease its owner is reminded; None: not at all."""
    if lease_seconds < SHORTEST_LEASE_SECONDS:
        return None
    return min(max(lease_seconds * SHARE, LEAST_SECONDS), MOST_SECONDS)
