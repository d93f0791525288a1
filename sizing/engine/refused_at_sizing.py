"""What stops a server whose flags are taken, when its pools are sized; and what this tool does not size.

Source: engine-sizing.md sections 8, 11 and 12.
"""

from collections.abc import Iterator

from sizing.basics.problems import Refusal
from sizing.engine.resolved import Resolved
from sizing.releases.rules import at_least


def refusal_at_sizing(resolved: Resolved) -> Refusal | None:
    """The first reason why the pools cannot be sized; None where they can."""
    return next(_refusals(resolved), None)


def _refusals(resolved: Resolved) -> Iterator[Refusal]:
    yield from _rings_without_requests(resolved)
    yield from _ring_length(resolved)
    yield from _window_by_requests(resolved)


def _rings_without_requests(resolved: Resolved) -> Iterator[Refusal]:
    """GDN rings for requests that are not set: the release divides None by the attention-DP width (section 12)."""
    scenario = resolved.scenario
    rings = scenario.replayssm == "spec" and scenario.family == "GDN" and not scenario.D
    if rings and scenario.max_running_requests is None and at_least(scenario.release, "0.5.20"):
        yield Refusal(
            kind="engine_crash",
            engine_words="TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'",
            cure="--enable-linear-replayssm-spec without speculation needs --max-running-requests: set it, or drop the "
            "flag.",
        )


def _ring_length(resolved: Resolved) -> Iterator[Refusal]:
    """KDA's rings hold a power of two of positions, at least 2 x D (section 8), which is checked at allocation."""
    scenario = resolved.scenario
    length, least = scenario.linear_replayssm_cache_len, 2 * scenario.D
    fits = length >= least and length.bit_count() == 1
    if scenario.family != "KDA" or not resolved.costs.ring_on_slot or fits:
        return
    enough = 1 << max(least - 1, 1).bit_length()
    cure = f"--linear-replayssm-cache-len {length} must be a power of two and at least 2 x D = {least}: set {enough}."
    yield Refusal(kind="flags", engine_words="", cure=cure)


def _window_by_requests(resolved: Resolved) -> Iterator[Refusal]:
    """With the radix cache off and a request count the window pool is sized by requests and by the prefill chunk
    (`SWARequestCapPoolConfigurator`), which is no input here: no number rests on a guess.
    """
    scenario = resolved.scenario
    if not scenario.window_bytes_per_token or scenario.max_running_requests is None or resolved.radix_cache:
        return
    cure = (
        "With the radix cache off and --max-running-requests the engine sizes the window pool by requests and "
        "--chunked-prefill-size, which this tool does not do: leave one of them out."
    )
    yield Refusal(kind="not_served", engine_words="", cure=cure)
