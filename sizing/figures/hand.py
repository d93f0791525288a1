"""What a page needs to answer a hand on a figure by itself: at every stop the numbers solved, and the words for them.

The browser looks a stop up and fills its numbers into the words; it computes nothing. What a figure itself shows of
the input that is set carries the name OWN, and is hidden while a hand is on it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sizing.answers.band import at_low_end
from sizing.answers.input_curve import InputCurve, context_stops, over_input, ratio_stops
from sizing.answers.solve import Sizing
from sizing.answers.sweep import RATIO
from sizing.basics.units import count, stated_ratio_text
from sizing.engine.rank import rank_of
from sizing.engine.slots import is_pinned, ratio_is_ignored
from sizing.engine.split import Split
from sizing.explain.verdict import REFUSED, binds_words, estimated_form, headline_form
from sizing.scenario.inputs import label
from sizing.scenario.rest import ends_of, missing_words, rest_of

Hand = dict[str, Any]
LIMITS = "mamba clamp {clamp}, KV cap {cap}"


def hand_over_context(sizing: Sizing) -> Hand | None:
    """L under the hand on figure 1: 16 stops to each doubling, the balance point and what is set."""
    safe = at_low_end(sizing)
    crossing = [safe.now.crossing] if isinstance(safe.now, Split) else []
    stops = context_stops(sizing.scenario.L, *crossing)
    return _hand(sizing, over_input(safe.rank, "L", stops), _length_words, sizing.scenario.L)


def hand_over_ratio(sizing: Sizing, drawn: Sequence[float]) -> Hand | None:
    """The ratio under the hand on figure 2, at the ratios that are drawn; None where the engine ignores it."""
    if ratio_is_ignored(sizing.resolved):
        return None
    own = None if is_pinned(sizing.resolved) else sizing.ratio_now
    stops = sorted({*ratio_stops(drawn), *([] if own is None else [own])})
    return _hand(sizing, over_input(at_low_end(sizing).rank, RATIO, stops), _ratio_words, own)


# Kept, because an axis stands still while something moves on it.
_ratio_words, _length_words = lru_cache(maxsize=1024)(stated_ratio_text), lru_cache(maxsize=1024)(count)


def _hand(sizing: Sizing, found: InputCurve, written: Callable[[Any], str], own: float | None) -> Hand | None:
    """Numbers as columns (one number where all are the same), words as forms that a stop chooses from; None where the
    weights do not fit, whatever is moved.
    """
    if missing_words(rest_of(sizing.scenario)):
        return None
    columns = {"clamp": found.clamp, "cap": found.kv_cap, "tokens": found.kv_tokens, "runs": found.runs}
    keys, said = _exact(sizing, found, columns) if ends_of(sizing.scenario) is None else _banded(sizing, found, columns)
    forms = list(dict.fromkeys(keys))
    numbers = {key: number for number, key in enumerate(forms)}
    return {
        "axes": [{"input": found.name, "name": label(found.name), "at": list(found.at), "own": own}],
        "words": [written(value) for value in found.at],
        "L": count(sizing.scenario.L),
        "columns": {name: _shortest(column.tolist()) for name, column in columns.items()},
        "forms": [_form(found.name, *said(key)) for key in forms],
        "form": _shortest([numbers[key] for key in keys]),
    }


Said = Callable[[Any], tuple[str, str]]  # headline and what stands beside the line, for one kind of stop


def _exact(sizing: Sizing, found: InputCurve, columns: dict[str, Any]) -> tuple[list[Any], Said]:
    """One rest: what runs and what binds."""
    ranks = sizing.scenario.attn_dp_size
    if ranks > 1:
        columns["total"] = found.runs * ranks
    stops = zip(np.minimum(found.runs, 2).tolist(), found.binding, found.refused.tolist(), strict=True)
    keys = [None if refused else (few, binding) for few, binding, refused in stops]

    def said(key: Any) -> tuple[str, str]:
        if key is None:
            return REFUSED, "refused"
        binds = binds_words(key[1], sizing.scenario)[2:] if key[0] else "not one fits"
        return headline_form(key[0], key[1], sizing.scenario), f"<b>{{runs}} run</b>, {binds}\n{LIMITS}"

    return keys, said


def _banded(sizing: Sizing, found: InputCurve, columns: dict[str, Any]) -> tuple[list[Any], Said]:
    """An estimated rest: what runs at both its ends, as the headline has it; the line is that of the low one, found."""
    scenario = sizing.scenario
    ends = [found, *(over_input(rank_of(end), found.name, found.at) for end in (ends_of(scenario) or ())[1:])]
    runs = np.sort(np.stack([np.where(end.refused, 0, end.runs) for end in ends]), axis=0)
    columns |= {"low": runs[0], "high": runs[1], "total": runs[0] * scenario.attn_dp_size}
    named = [[() if no else (name,) for no, name in zip(end.refused, end.binding, strict=True)] for end in ends]
    binding = [tuple(sorted({*low, *high})) for low, high in zip(*named, strict=True)]
    sides = zip(*runs.tolist(), binding, found.refused.tolist(), strict=True)
    # A form depends on whether the two ends run alike, and on whether that is none, one or more.
    keys = [(min(low, 2), min(high, 2 if low == high else 3), pair, refused) for low, high, pair, refused in sides]

    def said(key: Any) -> tuple[str, str]:
        low, high, pair, refused = key
        many = "{low}" if low == high else "{low} to {high}"
        return estimated_form(low, high, {*pair}, scenario), f"<b>{many} run</b>" + ("" if refused else f"\n{LIMITS}")

    return keys, said


def _form(name: str, headline: str, numbers: str) -> dict[str, str]:
    """The headline, and the lines beside the line that is held; the first of them names the stop."""
    stop = "L = {at}" if name == "L" else "r = {at}"
    return {"headline": headline.replace("{L}", "{at}") if name == "L" else headline, "label": f"{stop}\n{numbers}"}


def _shortest(values: list[int]) -> Any:
    return values[0] if len(set(values)) == 1 else values
