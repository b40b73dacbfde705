"""When an owner is reminded: a share of the lease, within bounds, and not for very short leases."""

from __future__ import annotations

import pytest

from dibs.domain.reminders import reminder_lead

MINUTE, HOUR = 60, 3600


@pytest.mark.parametrize(
    ("lease", "lead"),
    [
        (1, None),
        (15 * MINUTE - 1, None),
        (15 * MINUTE, 5 * MINUTE),
        (25 * MINUTE, 5 * MINUTE),
        (30 * MINUTE, 6 * MINUTE),
        (4 * HOUR, 48 * MINUTE),
        (12 * HOUR, HOUR),
        (7 * 24 * HOUR, HOUR),
    ],
)
def test_the_lead_is_a_share_of_the_lease_within_bounds(lease: int, lead: int | None) -> None:
    assert reminder_lead(lease) == lead
