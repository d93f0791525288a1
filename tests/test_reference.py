"""The Reference page's tables against what the specification prints (compute-mamba-ratio.md) and measured."""

import pytest

from sizing import Scenario, Split, solve
from sizing.basics.units import GIB, number
from sizing.explain import published_examples as examples
from sizing.explain.published_examples import MEASURED, WORKED_LOG, Measured, beside, rest_that_fits
from sizing.explain.reference_tables import (
    CONTEXTS,
    Table,
    glossary,
    inputs_table,
    log_constants_table,
    measured_doubts_table,
    measured_table,
    not_modelled,
    printed_ratios_table,
    ratio_table,
    releases_table,
    slots_table,
    token_equiv_at,
    token_equiv_table,
)
from sizing.releases.rules import CHANGES, RELEASES
from sizing.specification import optimal_ratio

BOOT_LOGS, BALANCED = MEASURED[:3], MEASURED[3:]

# compute-mamba-ratio.md, the table under "S (state slots per running request)": strategy, S, S with the skip.
SPECIFIED_SLOTS = [
    ("--disable-radix-cache", "1", "1"),
    ("no_buffer", "3", "3"),
    ("extra_buffer, overlap on", "5", "4"),
    ("extra_buffer, overlap off", "4", "3"),
    ("extra_buffer_lazy", "4", "3"),
]
# The same file, "Reference r": read from the row itself, so that a slip in PRINTED_RATIOS shows.
PRINTED_ROW = "| L | 2K | 4K | 8K | 32K | 64K | 128K |\n| r | 10.0 | 5.0 | 2.5 | 0.62 | 0.31 | 0.16 |"


def tables(scenario: Scenario) -> list[Table]:
    """Every table of the page, in its order."""
    return [
        measured_table(),
        measured_doubts_table(),
        slots_table(),
        releases_table(),
        printed_ratios_table(),
        ratio_table(scenario),
        token_equiv_table(scenario),
        log_constants_table(),
        inputs_table(),
        glossary(),
        not_modelled(),
    ]


def name(run: Measured) -> str:
    """A run's name as a test id."""
    return run.name


def split(scenario: Scenario) -> Split:
    """A scenario's split, which the engine must not refuse."""
    now = solve(scenario).now
    assert isinstance(now, Split)
    return now


# --- Measured runs


@pytest.mark.parametrize("run", BOOT_LOGS, ids=name)
def test_boot_log_is_predicted_exactly(run: Measured) -> None:
    """Every number of the three boot logs comes out to the integer."""
    assert [row.predicted for row in beside(run)] == [row.measured for row in beside(run)]


@pytest.mark.parametrize(("run", "predicted"), [(BALANCED[0], [87, 86]), (BALANCED[1], [126, 131])])
def test_balanced_example_is_predicted_within_two_requests(run: Measured, predicted: list[int]) -> None:
    """The engine's rules give these numbers at the borrowed rest, and the runs measured at most 2 off."""
    rows = beside(run)
    assert [row.predicted for row in rows] == predicted
    assert all(abs(row.predicted - row.measured) <= 2 for row in rows)


def test_measured_numbers_are_the_published_ones() -> None:
    """The five runs of the specification, number by number."""
    assert {run.name: [reading.measured for reading in run.readings] for run in MEASURED} == {
        "TP8, default ratio": [257, 1_167_552, 51],
        "DCP8, r = 5.97": [451, 90],
        "DCP8, r = 9": [474, 94],
        "TP8 lazy, r = 1.8": [88, 87],
        "DCP8 lazy, r = 14": [125, 129],
    }


@pytest.mark.parametrize("run", MEASURED, ids=name)
def test_one_rest_gives_every_number_of_a_run(run: Measured) -> None:
    """Each run has one unknown, its rest: both ends of the range that is shown give all that was measured."""
    found = rest_that_fits(run)
    assert found is not None
    for rest_gib in found:
        refitted = run.model_copy(update={"scenario": run.scenario.model_copy(update={"rest_gib": rest_gib})})
        assert all(row.predicted == row.measured for row in beside(refitted))


def test_rest_of_a_run_that_no_rest_explains_is_none() -> None:
    """A clamp that does not belong to its slots is explained by no memory."""
    run = MEASURED[0].model_copy(update={"readings": (MEASURED[0].readings[0], examples.Reading("clamp", 60))})
    assert rest_that_fits(run) is None


def test_fitted_rests_lie_in_their_ranges() -> None:
    """28.529 is the one value for the TP8 log; 27.64 serves both DCP8 logs."""
    ranges = [rest_that_fits(run) for run in BOOT_LOGS]
    assert ranges[0] == (28.529, 28.529)
    assert all(low <= examples.DCP8_REST_GIB <= high for low, high in filter(None, ranges[1:]))


@pytest.mark.parametrize(("ratio", "pair"), [(14, (125, 129)), (1.8, (86, 683))])
def test_one_rest_gives_both_pairs_of_the_lazy_dcp8_run(ratio: float, pair: tuple[int, int]) -> None:
    """What the page says of 28.29 GiB: the measured pair, and the pair named for the naive ratio."""
    stated = MEASURED[-1].scenario.model_copy(
        update={"rest_gib": examples.LAZY_DCP8_REST_GIB, "mamba_full_memory_ratio": ratio}
    )
    assert (split(stated).clamp, split(stated).kv_cap) == pair


def test_measured_table_shows_each_reading_beside_its_prediction() -> None:
    """One row for each of the 11 published numbers; a difference is signed."""
    rows = measured_table().rows
    assert len(rows) == sum(len(run.readings) for run in MEASURED) == 11
    assert rows[1] == ("TP8, default ratio", "KV tokens on one rank", "1,167,552", "1,167,552", "exact")
    assert rows[-1] == ("DCP8 lazy, r = 14", "KV cap", "131", "129", "+2")


# --- The worked log


def test_worked_log_read_as_specified_gives_the_printed_constants() -> None:
    """56.4 MB, 13.8 KB and 4080, as the specification prints them."""
    found = examples.read_as_specified(WORKED_LOG)
    assert number(found.state_bytes_per_slot / 1e6, 1) == "56.4"
    assert number(found.kv_bytes_per_token / 1e3, 1) == "13.8"
    assert round(found.token_equiv, -1) == examples.PRINTED_TOKEN_EQUIV


def test_worked_log_holds_the_exact_bytes_only_with_its_padding_slot() -> None:
    """Two printed sizes of two decimals leave 0.01 GiB: N + 1 slots of the exact size lie in it, N do not."""
    exact = examples.from_geometry().state_bytes_per_slot
    printed = (WORKED_LOG.conv_gib + WORKED_LOG.ssm_gib) * GIB
    assert abs((WORKED_LOG.slots + 1) * exact - printed) < 0.01 * GIB
    assert abs(WORKED_LOG.slots * exact - printed) > 0.01 * GIB


def test_worked_log_readings_as_shown() -> None:
    """The three readings, digit by digit."""
    assert [row[1:] for row in log_constants_table().rows] == [
        ("56,402,781", "13,822.37", "4,080.54"),
        ("56,184,165", "13,821.62", "4,064.95"),
        ("56,171,520", "13,824.00", "4,063.33"),
    ]


# --- S


def test_slots_table_is_the_specification_s() -> None:
    """Every cell of the specification's S table."""
    assert [row[:3] for row in slots_table().rows[:5]] == SPECIFIED_SLOTS


def test_slots_table_says_what_pipeline_stages_do() -> None:
    """A default strategy under PP is on the row of 4, or 3 with the skip."""
    assert slots_table().rows[5][:3] == ("extra_buffer, pp_size above 1", "4", "3")


def test_slots_table_says_what_auto_resolves_to() -> None:
    """auto is extra_buffer by default, and no_buffer where nothing can be tracked or nothing is supported."""
    assert [row[1:3] for row in slots_table().rows[6:9]] == [("5", "4"), ("3", "3"), ("3", "3")]


def test_releases_table_has_every_change_with_the_default_s_of_its_release() -> None:
    """The default S is 3, but 5 in 0.5.7 and since 0.5.14; every row says since when."""
    rows = releases_table().rows
    assert [row[0] for row in rows] == [change.since for change in CHANGES]
    before = [row for row in rows if RELEASES.index(row[0]) < RELEASES.index("0.5.14")]
    assert {row[2] for row in before if row[0] != "0.5.7"} == {"3"}
    assert {row[2] for row in before if row[0] == "0.5.7"} == {"5"}
    assert {row[2] for row in rows if RELEASES.index(row[0]) >= RELEASES.index("0.5.14")} == {"5"}


def test_slots_table_gives_the_reasons_that_add_up() -> None:
    """The default strategy: 3 and 2, and what the skip takes away."""
    assert slots_table().rows[2][3].replace("\u00a0", " ") == (
        "3 base: live state, radix retention and copy-on-write headroom; +2 ping-pong track buffer, overlap "
        "on. With the skip: -1 SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK frees one resident slot."
    )


def test_slots_table_names_refused_combinations_in_the_engine_s_words() -> None:
    """Combinations that are refused have no S; the row says why."""
    assert [row[1:] for row in slots_table().rows[9:]] == [
        (
            "-",
            "-",
            "refused: “Lazy extra buffer requires overlap schedule (--disable-overlap-schedule is incompatible)”",
        ),
        (
            "-",
            "-",
            "refused: “extra_buffer_lazy unsupported under PD disaggregation; use --mamba-radix-cache-strategy "
            "extra_buffer.”",
        ),
        ("-", "-", "refused: “extra_buffer is not supported for Lfm2ForCausalLM; use no_buffer.”"),
        (
            "-",
            "-",
            "refused: “no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.”",
        ),
        ("-", "-", "refused: “no_buffer only supports page_size=1.”"),
        ("1", "1", "1\u00a0live state; the radix cache is off, nothing is kept for reuse."),
    ]


# --- r* by L


def test_printed_ratios_are_the_specification_s_row() -> None:
    """The table holds the printed row, cell by cell, at the printed lengths."""
    lengths, ratios = ([cell.strip() for cell in line.split("|")[2:-1]] for line in PRINTED_ROW.split("\n"))
    shown = {row[0]: row[1] for row in printed_ratios_table().rows if row[1] != "-"}
    assert shown == dict(zip(lengths, ratios, strict=True))


@pytest.mark.parametrize(("L", "printed"), list(examples.PRINTED_RATIOS.items()))
def test_printed_constants_give_the_printed_ratio(L: int, printed: str) -> None:
    """With token_equiv 4080 and S = 5 the formula gives each printed digit."""
    digits = len(printed.split(".")[1])
    ratio = optimal_ratio(L, examples.PRINTED_TOKEN_EQUIV, 1, examples.PRINTED_S)
    assert number(ratio, digits) == printed


def test_exact_bytes_differ_from_the_printed_row_at_2k_only() -> None:
    """What the note under the table says."""
    exact = examples.from_geometry().token_equiv
    shown = {
        L: number(optimal_ratio(L, exact, 1, examples.PRINTED_S), len(printed.split(".")[1]))
        for L, printed in examples.PRINTED_RATIOS.items()
    }
    assert shown == {**examples.PRINTED_RATIOS, 2048: "9.9"}


def test_ratio_table_agrees_with_solve() -> None:
    """Each row is the solve at that L, the scenario's own among them."""
    rows = ratio_table(Scenario()).rows
    assert len(rows) == len(CONTEXTS) + 1
    assert rows[3] == ("9,216", "2.2045", "74", "74", "--mamba-full-memory-ratio 2.2045")
    assert rows[-1] == ("1,048,576", "0.019375", "1", "2", "--max-mamba-cache-size 11")


def test_ratio_table_takes_the_scenario_as_it_stands() -> None:
    """Drafts and dcp_size are in r*; under DCP the flag is a pin."""
    stated = Scenario(D=4, dcp_size=2, L=8192)
    row = next(row for row in ratio_table(stated).rows if row[0] == "8,192")
    assert float(row[1]) == pytest.approx((5 + 4) * 4063.3333 * 2 / 8192, rel=1e-4)
    assert row[4].startswith("--max-mamba-cache-size ")


def test_ratio_table_says_why_speculation_stops_at_48() -> None:
    """The engine's own assumption is named while it holds, and only then."""
    words = "Under speculation the engine assumes 48 requests until --max-running-requests is set"
    assert words in ratio_table(Scenario(D=4)).note
    assert words not in ratio_table(Scenario(D=4, max_running_requests=60)).note
    assert words not in ratio_table(Scenario()).note


def test_ratio_table_shows_a_split_that_cannot_be() -> None:
    """Without memory r* stays, and nothing runs at any L."""
    assert {row[2:] for row in ratio_table(Scenario(rest_gib=0.01)).rows} == {("refused", "none", "-")}


def test_problem_refused_flags_leave_one_row_and_the_sentence() -> None:
    """A combination the engine refuses is said, not raised."""
    found = ratio_table(Scenario(mamba_radix_cache_strategy="no_buffer"))
    assert found.rows == (("any L", "refused", "refused", "refused", "-"),)
    assert found.note == (
        "SGLang would refuse to start: “no_buffer only supports page_size=1.” "
        "Set --page-size 1 (now 64) or choose another strategy."
    )


# --- token_equiv


def test_fp8_doubles_token_equiv_exactly() -> None:
    """fp8 KV is half the bytes, for either SSM dtype."""
    for ssm in ("float32", "bfloat16"):
        wide, narrow = (token_equiv_at(Scenario(), ssm, kv) for kv in ("bfloat16", "fp8_e4m3"))
        assert wide is not None
        assert narrow == 2 * wide


def test_float32_state_is_just_under_twice_bfloat16() -> None:
    """(2 SSM + conv) / (SSM + conv) of the worked example: 1.934 (model-geometry.md, trap 20)."""
    wide, narrow = (token_equiv_at(Scenario(), ssm, "fp8_e4m3") for ssm in ("float32", "bfloat16"))
    assert wide is not None
    assert narrow is not None
    assert number(wide / narrow, 3) == "1.934"


def test_token_equiv_table_as_shown() -> None:
    """The worked example's 2x2; its own cell is what solve gives."""
    assert token_equiv_table(Scenario()).rows == (
        ("float32", "2,031.67", "4,063.33"),
        ("bfloat16", "1,050.33", "2,100.67"),
    )
    assert number(solve(Scenario()).token_equiv) == "4,063.33"


def test_token_equiv_of_an_unknown_conv_part_stays_unknown() -> None:
    """Only the dtype at which the bytes are stated has a value."""
    found = token_equiv_table(Scenario(conv_bytes_per_slot=None))
    assert found.rows == (("float32", "2,031.67", "4,063.33"), ("bfloat16", "unknown", "unknown"))
    assert "The conv part is unknown, and so is the other SSM dtype." in found.note


def test_token_equiv_at_half_a_byte_stays_unknown() -> None:
    """An odd count of bfloat16 bytes has no fp8 half; nothing is rounded."""
    found = token_equiv_table(Scenario(kv_bytes_per_token=27_649, kv_bytes_dtype="bfloat16", kv_cache_dtype="bfloat16"))
    assert [row[2] for row in found.rows] == ["unknown", "unknown"]


def test_token_equiv_of_a_slot_that_cannot_be_rescaled_says_why() -> None:
    """Half a float32 element is not a whole bfloat16 one; the conv part is not to blame."""
    found = token_equiv_table(Scenario(state_bytes_per_slot=1_907_715))
    assert [row[1] for row in found.rows] == ["69.00", "unknown"]
    assert "not a whole number of elements" in found.note


# --- All tables


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(),
        Scenario(D=4, draft_kv_bytes_per_token=576, dcp_size=8, L=1),
        Scenario(disable_radix_cache=True, max_running_requests=8),
        Scenario(split="pin", max_mamba_cache_size=5, conv_bytes_per_slot=None),
        Scenario(rest_gib=-3.0, L=2**24),
        Scenario(kv_cache_dtype="fp8_e5m2", mamba_ssm_dtype="float16"),
    ],
    ids=["worked", "drafts", "no_radix", "pin", "no_memory", "other_dtypes"],
)
def test_every_table_is_whole(scenario: Scenario) -> None:
    """No missing cell, no empty cell, no empty note, one title each, whatever the scenario."""
    found = tables(scenario)
    assert len({table.title for table in found}) == len(found)
    for table in found:
        assert table.rows
        assert table.note
        assert all(len(row) == len(table.columns) and all(row) for row in table.rows)


def test_terms_are_defined_once() -> None:
    """One row for each term."""
    terms = [row[0] for row in glossary().rows]
    assert sorted(set(terms)) == sorted(terms)
