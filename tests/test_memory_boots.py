"""The estimate beside public boots: automatic fractions as printed, and rest as the logs show it."""

from collections import Counter

import pytest

from sizing.explain.boots_tables import boots_table, fractions_table
from sizing.memory.before_load import Hardware, NotEstimatedError, before_load
from sizing.memory.boots import BOOTS, PRINTED, Boot, Printed

ROUNDED = 0.0005  # the document's errors have one decimal of a percent
GB10 = [boot for boot in BOOTS if boot.free_gib is not None]


@pytest.mark.parametrize("printed", [pytest.param(item, id=item.source) for item in PRINTED])
def test_automatic_fraction(printed: Printed) -> None:
    """Printed values exactly; those read from pools to the rounding of logs with two decimals."""
    tolerance = 0.002 + 1e-9 if printed.how == "from pools" else 1e-9
    assert printed.predicted == pytest.approx(printed.seen, abs=tolerance)


def test_nineteen_fractions() -> None:
    """15 were printed, 4 follow from pools; each source is there once."""
    assert Counter(item.how.split(",")[0] for item in PRINTED) == {"printed": 15, "from pools": 4}
    assert len({item.source for item in PRINTED}) == 19


@pytest.mark.parametrize("boot", [pytest.param(item, id=item.name) for item in BOOTS])
def test_rest_is_no_worse_than_the_documents(boot: Boot) -> None:
    """No boot is predicted worse than the document predicts it, and what was seen lies in the band."""
    found = boot.predicted
    assert abs(boot.error) <= abs(boot.document_error) + ROUNDED
    assert found.low_gib <= boot.seen_gib <= found.high_gib


def test_fourteen_boots() -> None:
    """The median error without a log is 0.4 % or less over the discrete GPUs, the worst 2.8 %."""
    errors = sorted(abs(boot.error) for boot in BOOTS if boot.free_gib is None)
    assert (len(BOOTS), len(errors)) == (14, 13)
    assert errors[len(errors) // 2] <= 0.004 + ROUNDED
    assert errors[-1] <= 0.028 + ROUNDED


def test_unified_memory_needs_what_is_available() -> None:
    """GB10 gets no number from its total."""
    assert len(GB10) == 1
    with pytest.raises(NotEstimatedError, match="MemAvailable"):
        before_load(Hardware(memory_mib=GB10[0].memory_mib, unified=True), ranks=1)


def test_the_reference_tables_hold_every_boot() -> None:
    """Predicted beside seen, errors as printed; the sentence below gives the median and the worst."""
    rests, fractions = boots_table(), fractions_table()
    assert [row[0] for row in rests.rows] == [boot.name for boot in BOOTS]
    at = {name: rests.columns.index(name) for name in ("estimated [GiB]", "seen [GiB]", "error [%]")}
    for row in rests.rows:
        estimated, seen, error = (float(row[column]) for column in at.values())
        assert error == pytest.approx((estimated / seen - 1) * 100, abs=0.15)
    assert "0.3% at the median and 2.8% at worst" in rests.note
    for row, item in zip(fractions.rows, PRINTED, strict=True):
        assert (row[4] == row[5]) or item.how == "from pools"
