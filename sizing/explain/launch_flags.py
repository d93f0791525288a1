"""The flags to set, as text that can be pasted behind a launch command."""

from sizing.answers.band import at_low_end
from sizing.answers.optimum import Optimum
from sizing.answers.recommended import SPARE_WHY, Recommended, Ways, ways
from sizing.answers.solve import Sizing
from sizing.basics.units import count, requests_text, stated_ratio_text
from sizing.engine.slots import pin_divisor
from sizing.releases.flags import PIN, RATIO, REQUESTS
from sizing.releases.rules import EAGLE_KIND, Rules, rules_of
from sizing.scenario.from_model import geometry_of
from sizing.scenario.inputs import DEFAULTS, INPUTS, Scenario, flag_text

# Inputs whose flags depend on more than their own value, each written by a function below. All others are written where
# they are not the default.
OWN_RULE = frozenset(
    {
        "mamba_full_memory_ratio", "max_mamba_cache_size",  # the split
        "mamba_ssm_dtype", "kv_cache_dtype", "page_size",  # always
        "mamba_radix_cache_strategy", "disable_radix_cache", "disable_overlap_schedule", "mamba_track_interval",
        "tp_size", "attn_dp_size", "context_length",
        "D", "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "linear_replayssm_cache_len",
    }
)  # fmt: skip
VARIABLES = [name for name, own in INPUTS.items() if own.flag and not own.names]
OTHERS = [name for name, own in INPUTS.items() if own.names and name not in OWN_RULE]
WIDTH = 92  # characters of a line that a slide still shows


class Flags(Ways):
    """Both ways to set the best split, which one to take and why."""

    why: str


def flags(sizing: Sizing) -> Flags | None:
    """The ratio and the pin that run most with a slot to spare; None when no split runs a request. Where rest is an
    estimate they are chosen for its low end.
    """
    safe = at_low_end(sizing)
    if safe is not sizing:
        return flags(safe)
    best, both = sizing.optimum, ways(sizing)
    if best is None or both is None:
        return None
    why = _why_pin(sizing, best, both.ratio_runs) if both.take == "pin" else _why_ratio(sizing, best, both.pin_runs)
    return Flags(**both.model_dump(), why=f"{why}{spare_cost(sizing, best)}")


def _why_pin(sizing: Sizing, best: Optimum, ratio_runs: int | None) -> str:
    said = pin_words(sizing, best)
    if ratio_runs is None:
        return f"The pin: no ratio gives as many here. {said}"
    if ratio_runs < best.runs:
        return f"The pin: it runs {count(best.runs)}, the ratio {count(ratio_runs)}. {said}"
    return f"The pin: {' and '.join(sizing.reasons_to_pin)}. {said}"


def _why_ratio(sizing: Sizing, best: Optimum, pin_runs: int | None) -> str:
    if pin_runs is None:
        return f"The ratio: while the radix cache is on, SGLang {sizing.scenario.release} overwrites a pin with it."
    return (
        "The ratio: it still fits when rest changes, with another --mem-fraction-static or the next release. "
        f"The pin is {count(best.pin)} slots{_on_each_rank(sizing)} whatever the memory: {pin_words(sizing, best)}"
    )


def spare_cost(sizing: Sizing, best: Optimum) -> str:
    """What the slot to spare costs, and the other way; empty where it costs nothing."""
    if best.unspared == best.runs:
        return ""
    slots = sizing.resolved.request_slots.slots(best.unspared)
    return (
        f" The spare slot costs {requests_text(best.unspared - best.runs)}: {count(best.unspared)} run with just "
        f"{count(slots)} slots, where {SPARE_WHY}."
    )


def pin_words(sizing: Sizing, best: Optimum) -> str:
    """How the pin of an optimum comes about."""
    slots = sizing.resolved.request_slots.product(requests_text(best.runs), best.spare)
    why = " Without the spare slot an assertion can end the server at a chunk border." if best.spare else ""
    ranks = pin_divisor(sizing.resolved)
    times = f", times attn_dp_size {ranks}" if ranks > 1 else ""
    return f"{slots}{times}.{why}"


def _on_each_rank(sizing: Sizing) -> str:
    return " on each rank" if sizing.scenario.attn_dp_size > 1 else ""


def environment(scenario: Scenario) -> str | None:
    """The environment variables that the scenario needs, as lines for a shell; None where it needs none."""
    rules = rules_of(scenario.release)
    ignored = {"skip_decode_lock": not rules.reads_skip_decode_lock, "mamba_conv_dtype": not rules.reads_conv_dtype}
    names = [name for name in VARIABLES if not ignored.get(name)]
    return "\n".join(f"export {flag_text(name, getattr(scenario, name))}" for name in _set(scenario, names)) or None


def why_words(sizing: Sizing, found: Recommended) -> str:
    """Why this flag and not the other, and what a slot to spare costs; empty where more than the split is set."""
    split = flags(sizing)
    return split.why if split is not None and found.flags == (split.chosen,) else ""


def launch_flags(sizing: Sizing, found: Recommended) -> str:
    """What to set and everything that this scenario assumes, to put behind a launch command."""
    scenario = found.scenario
    split = [flag for flag in found.flags if not flag.startswith(REQUESTS)]
    words = split or _split_as_set(scenario)
    words += [f"--kv-cache-dtype {scenario.kv_cache_dtype}", f"--mamba-ssm-dtype {scenario.mamba_ssm_dtype}"]
    words += [f"--page-size {scenario.page_size}", *_cache(sizing)]
    words += [*_sizes(scenario, sizing.resolved.rules), *_speculation(scenario, sizing.resolved.rules)]
    words += [flag_text(name, getattr(scenario, name), scenario.release) for name in _set(scenario, OTHERS)]
    return _lines(words)


def _split_as_set(scenario: Scenario) -> list[str]:
    """The split that stays where another flag alone is recommended."""
    ratio, pin = scenario.mamba_full_memory_ratio, scenario.max_mamba_cache_size
    return {"ratio": [f"{RATIO} {stated_ratio_text(ratio)}"], "pin": [f"{PIN} {pin}"]}.get(scenario.split, [])


def _set(scenario: Scenario, names: list[str]) -> list[str]:
    """Those of the inputs that are not as by default."""
    return [name for name in names if getattr(scenario, name) != DEFAULTS[name]]


def _cache(sizing: Sizing) -> list[str]:
    """The strategy that `auto` resolves to is written out, so that another default does not change S."""
    scenario, rules, resolved = sizing.scenario, sizing.resolved.rules, sizing.resolved
    strategy = resolved.strategy if resolved.radix_cache else None
    words = ["--disable-radix-cache"] if scenario.disable_radix_cache else []
    if strategy not in (None, "auto"):
        words.append(f"{rules.strategy_flag} {strategy}")
    if scenario.disable_overlap_schedule or (
        strategy == "no_buffer" and rules.checks_no_buffer and not resolved.overlap
    ):
        words.append("--disable-overlap-schedule")
    if (
        strategy
        and strategy.startswith("extra_buffer")
        and scenario.mamba_track_interval != DEFAULTS["mamba_track_interval"]
    ):
        words.append(f"--mamba-track-interval {scenario.mamba_track_interval}")
    return words


def _speculation(scenario: Scenario, rules: Rules) -> list[str]:
    words = []
    if scenario.D:
        words += [f"--speculative-algorithm {scenario.speculative_algorithm}"]
        words += [f"--speculative-num-draft-tokens {scenario.D}", *_draft_steps(scenario)]
    if scenario.replayssm != "off":
        words += {
            "spec": [rules.spec_ring_flag],
            "decode": ["--enable-linear-replayssm"],
            "both": [rules.spec_ring_flag, "--enable-linear-replayssm"],
        }[scenario.replayssm]
        words.append(f"--linear-replayssm-cache-len {scenario.linear_replayssm_cache_len}")
    return words


def _draft_steps(scenario: Scenario) -> list[str]:
    """A chain of drafts (top-k 1) takes one step fewer than it has draft tokens; the server wants all three flags."""
    topk, steps = scenario.speculative_eagle_topk, scenario.speculative_num_steps
    if topk > 1:
        stated = [] if steps is None else [flag_text("speculative_num_steps", steps)]
        return [*stated, flag_text("speculative_eagle_topk", topk)]
    if scenario.speculative_algorithm not in EAGLE_KIND or scenario.D < 2:
        return []
    return [f"--speculative-num-steps {scenario.D - 1}", "--speculative-eagle-topk 1"]


def _lines(words: list[str]) -> str:
    """Flags with their values over lines that a shell joins again."""
    lines = words[:1]
    for word in words[1:]:
        if len(lines[-1]) + len(word) < WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n  ".join(lines)


def _own_context(scenario: Scenario) -> bool:
    """Whether --context-length must be said: the model's own needs no flag, nor the default where that is not known."""
    own = geometry_of(scenario.model).context_length if scenario.model else None
    return scenario.context_length != (own or DEFAULTS["context_length"])


def _sizes(scenario: Scenario, rules: Rules) -> list[str]:
    words = []
    if scenario.attn_dp_size > 1:
        words.append(rules.dp_flags.format(n=scenario.attn_dp_size))
    words.append(flag_text("tp_size", scenario.tp_size))
    if _own_context(scenario):
        words.append(flag_text("context_length", scenario.context_length))
    return words
