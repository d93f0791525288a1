"""The sections of a sheet, from the verdict down to its sources. Nothing here computes a new number."""

from sizing.answers import flip_points as flips
from sizing.answers import limit_panel as lifts
from sizing.answers.band import at_low_end
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import count
from sizing.explain.launch_flags import environment, launch_flags, why_words
from sizing.explain.reference_tables import not_modelled
from sizing.explain.unified_memory import UnifiedView, change_under, unified_in_force
from sizing.explain.verdict import advice, idle_words, verdict
from sizing.explain.working import Comparison, comparisons, working
from sizing.models import VERIFICATION_MEANS, byte_steps, entry
from sizing.models.summary import layers_in_words
from sizing.releases.rules import COVERED
from sizing.scenario.from_model import geometry_of
from sizing.scenario.inputs import Scenario
from sizing.sheet.inputs import InputRow, other_inputs, stated_inputs
from sizing.sheet.parts import Section, bullets, copyable, escaped, paragraph, table

SCOPE = (
    "Slots, tokens, bytes and GiB are those of one rank; 1 GiB is 1,073,741,824 bytes. {requests} This says how many "
    "requests fit, not how fast they run."
)
STEP_WIDTHS = (20, 27, 33, 20)  # [%] of the page
INPUT_COLUMNS = ("input", "flag or variable", "value")
INPUT_WIDTHS = (23, 34, 26, 17)


def verdict_section(sizing: Sizing, *, brief: bool = False) -> Section:
    """What runs and why, in words; the refusal and its cure where the engine would not start."""
    found, one = verdict(sizing), unified_in_force(sizing)
    headline, sentences = (one.headline, one.sentences) if one else (found.headline, found.sentences)
    body = paragraph(" ".join(sentences)) + ("" if one else paragraph(idle_words(at_low_end(sizing))))
    return Section(headline, body if brief else body + paragraph(_scope(sizing.scenario), "note"))


def refusal_section(refusal: Refusal) -> Section:
    """Flags that the engine refuses before it counts any memory: its words and the cure."""
    body = paragraph(f"{refusal.words} {refusal.cure}")
    return Section(
        "SGLang would refuse to start.", body + paragraph("No number follows from flags that are refused.", "note")
    )


def _scope(scenario: Scenario) -> str:
    ranks = scenario.attn_dp_size
    whose = f"one of {ranks} attention-DP ranks" if ranks > 1 else "the whole deployment"
    return SCOPE.format(requests=f"Requests are those of {whose}.")


def change_section(sizing: Sizing, *, brief: bool = False) -> Section:
    """The recommended change, what runs before and after, the reason, and the other way to set it."""
    one = unified_in_force(sizing)
    found = one or recommended(sizing)
    if found is None:
        return Section("What to set", paragraph("No split runs a request: there is no flag to set."))
    ranks = " on each rank" if sizing.scenario.attn_dp_size > 1 else ""
    title = "What to set" if found.change else "Nothing to change"
    other = (
        paragraph("Or, to run as many:", "label") + copyable(" ".join(found.alternative)) if found.alternative else ""
    )
    first = f'<p class="numbers">{escaped(found.numbers + ranks)}</p>' + copyable(found.flag)
    why = "" if brief else paragraph("" if isinstance(found, UnifiedView) else why_words(sizing, found), "note")
    return Section(title, first + paragraph(found.reason) + other + why)


def launch_section(sizing: Sizing) -> Section:
    """All that these numbers assume of the launch command, to copy; empty where no split runs."""
    one = unified_in_force(sizing)
    found = change_under(sizing, one) if one else recommended(sizing)
    if found is None:
        return Section("To copy", "")
    variables = environment(sizing.scenario)
    before = paragraph("Environment:", "label") + copyable(variables) if variables else ""
    after = paragraph("Launch flags with what to set, besides the model and the network:", "label")
    return Section("To copy", f'<div class="whole">{before}{after}{copyable(launch_flags(sizing, found))}</div>')


def limits_section(sizing: Sizing) -> Section:
    """Every limit, the smallest first, and what lifts it."""
    body = table(lifts.COLUMNS, lifts.lift_rows(sizing), (8, 16, 11, 29, 36), {2: "number"})
    return Section("Every limit, the smallest first", body)


def flips_section(sizing: Sizing) -> Section:
    """For each input the nearest value at which the other pool is short first."""
    found = flips.flips(sizing)
    rows = table(flips.COLUMNS, flips.flip_rows(found), (25, 25, 30, 20), {3: "number"})
    return Section("What turns the verdict", paragraph(flips.flips_words(sizing, found)) + rows if found else "")


def advice_section(sizing: Sizing) -> Section:
    """What to know or do that applies to this scenario."""
    return Section("What applies now", bullets((item.topic, item.text) for item in advice(sizing)))


def inputs_section(scenario: Scenario) -> Section:
    """What was set, then everything else that the numbers rest on."""
    stated, others = stated_inputs(scenario), other_inputs(scenario)
    if stated:
        others_are = "Everything else that counts here:"
        first = paragraph("Set for this deployment; the specification's worked example is Kimi-K3 at TP8 with fp8 KV.")
        first += table((*INPUT_COLUMNS, "worked example"), _input_rows(stated), INPUT_WIDTHS, {1: "code"})
    else:
        others_are = "What counts here:"
        first = paragraph(
            "This is the specification's worked example, Kimi-K3 at TP8 with fp8 KV: no input differs from it."
        )
    rest = paragraph(others_are)
    return Section(
        "Inputs", first + rest + table((*INPUT_COLUMNS, "from"), _input_rows(others), INPUT_WIDTHS, {1: "code"})
    )


def stated_section(scenario: Scenario) -> Section:
    """What was set for this deployment, alone."""
    stated = stated_inputs(scenario)
    rows = table((*INPUT_COLUMNS, "worked example"), _input_rows(stated), INPUT_WIDTHS, {1: "code"})
    none = paragraph("The specification's worked example, Kimi-K3 at TP8 with fp8 KV: no input differs from it.")
    return Section("What was set", rows or none)


def _input_rows(found: list[InputRow]) -> list[tuple[str, ...]]:
    return [(row.title, row.flag or "-", row.value, row.origin) for row in found]


def model_section(scenario: Scenario) -> Section:
    """Where the bytes of a slot and of a token come from."""
    title = "Where the bytes come from"
    if not scenario.model:
        return Section(
            title,
            paragraph(
                f"State bytes: {scenario.state_bytes_source}. KV bytes: {scenario.kv_bytes_source}. They were stated, "
                "not derived from a model."
            ),
        )
    geometry, found = geometry_of(scenario.model), entry(scenario.model)
    width = scenario.attn_tp_size
    steps = byte_steps(
        geometry,
        width,
        scenario.kv_cache_dtype,
        scenario.dcp_size,
        scenario.mamba_ssm_dtype,
        scenario.mamba_conv_dtype,
    )
    words = (
        f"{scenario.model} at an attention TP width of {width}: {layers_in_words(geometry)} Its configuration is "
        f"{VERIFICATION_MEANS[found.verification]}."
    )
    rows = [(step.quantity, step.formula, step.numbers, step.result) for step in steps]
    columns = ("quantity", "formula", "numbers", "bytes")
    stages = (
        f"With {scenario.pp_size} pipeline stages a rank is charged {count(scenario.state_bytes_per_slot)} bytes a "
        f"slot and {count(scenario.kv_bytes_per_token)} a token: see Inputs."
        if scenario.pp_size > 1
        else ""
    )
    return Section(title, paragraph(words) + table(columns, rows, STEP_WIDTHS, {3: "number"}) + paragraph(stages))


def working_section(sizing: Sizing) -> Section:
    """Each formula with the numbers in it."""
    rows = [(step.quantity, step.formula, step.numbers, step.result) for step in working(sizing)]
    return Section("The working", table(("quantity", "formula", "numbers", "result"), rows, STEP_WIDTHS))


def comparisons_section(sizing: Sizing) -> Section:
    """The published closed forms beside the engine's rules."""
    rows = [(row.quantity, row.specification, row.engine, _why(row)) for row in comparisons(sizing)]
    columns = ("quantity", "specification", f"SGLang {sizing.scenario.release}", "why they differ")
    return Section("The specification beside the engine", table(columns, rows, (20, 16, 28, 36)))


def _why(row: Comparison) -> str:
    return row.why or ("the same" if row.specification == row.engine else "-")


def allocations_section(sizing: Sizing) -> Section:
    """What is allocated beside what is charged; empty where the engine refuses."""
    rows = [
        (row.what, count(row.charged), "not known" if row.allocated is None else count(row.allocated))
        for row in sizing.allocations
    ]
    words = "Charged is what comes out of rest; where more is allocated, the slack of --mem-fraction-static pays."
    columns = ("what", "charged [bytes per rank]", "allocated [bytes per rank]")
    return Section(
        "Charged and allocated",
        paragraph(words) + table(columns, rows, (44, 28, 28), {1: "number", 2: "number"}) if rows else "",
    )


def not_modelled_section() -> Section:
    """What to know before a number from here is relied on."""
    found = not_modelled()
    return Section(found.title, table(found.columns, found.rows, (22, 42, 36)))


def sources_section(scenario: Scenario) -> Section:
    """What stands behind every number."""
    rows = [
        ("Specification", "compute-mamba-ratio, sgl-project/sglang#32763"),
        (
            "Engine",
            f"The sizing rules of SGLang {scenario.release}; this tool follows {COVERED}",
        ),
    ]
    if scenario.model:
        rows.append((f"Configuration of {scenario.model}", "; ".join(entry(scenario.model).sources)))
    return Section("Sources", bullets(rows))
