"""With the model chosen a boot log's bytes are exact, and solving what it says gives what the engine printed."""

import pytest

from sizing import Scenario, Split, read_scenario, solve
from sizing.bootlog import exact_bytes, inputs_of, read_file
from sizing.models import entry, read_config
from tests.log_cases import LogCase, log_cases

# The logs were made from shapes; these checkpoints have the same ones.
MODELS = {"kda-mla-93l": "moonshotai/Kimi-K3", "gdn-48l": "Qwen/Qwen3-Next-80B-A3B-Instruct"}


@pytest.mark.parametrize("case", [case for case in log_cases() if case.values[0].facts.get("arch") in MODELS])
def test_log_snaps_to_the_model(case: LogCase) -> None:
    """With the model chosen the bytes are the engine's integers, and solving gives its slots and running requests."""
    log = read_file(case.path)
    assert log.last
    facts = log.last.facts
    exact = exact_bytes(facts, read_config(entry(MODELS[case.facts["arch"]]).config))
    assert (exact.state, exact.kv, exact.sentences) == (
        case.facts["state_bytes_per_slot"],
        case.facts["kv_bytes_per_token_target"],
        (),
    )
    if facts.draft_token_bytes is not None:
        assert exact.kv is not None
        assert exact.draft_kv is not None
        assert exact.kv + exact.draft_kv == case.facts["kv_bytes_per_token_charged"]
    scenario = read_scenario(inputs_of(facts, exact).values)
    assert isinstance(scenario, Scenario), scenario
    split = solve(scenario).now
    assert isinstance(split, Split)
    assert (split.slots, split.admitted) == (facts.slots, facts.running)
