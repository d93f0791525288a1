"""What a page needs to answer a hand on a figure by itself: at every stop the numbers solved, and the words for them.

The browser looks a stop up and fills its numbers into the words; it computes nothing. What a figure itself shows of
the input that is set carries the name OWN, and is hidden while a hand is on it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sizing.answers.along import Along, along, context_stops, ratio_stops
from sizing.answers.solve import Sizing
from sizing.answers.sweep import RATIO
from sizing.basics.units import count, stated_ratio_text
from sizing.engine.pools import is_pinned, ratio_is_ignored
from sizing.engine.split import Split
from sizing.explain.verdict import BINDING_WORDS, REFUSED, headline_form
from sizing.scenario.inputs import label

Hand = dict[str, Any]


def hand_over_context(sizing: Sizing) -> Hand | None:
    """L under the hand on figure 1: 16 stops to each doubling, the balance point and what is set."""
    crossing = [sizing.now.crossing] if isinstance(sizing.now, Split) else []
    stops = context_stops(sizing.scenario.L, *crossing)
    return _hand(sizing, along(sizing.scenario, "L", stops), count, sizing.scenario.L)


def hand_over_ratio(sizing: Sizing, drawn: Sequence[float]) -> Hand | None:
    """The ratio under the hand on figure 2, at the ratios that are drawn; None where the engine ignores it."""
    if ratio_is_ignored(sizing.scenario):
        return None
    own = None if is_pinned(sizing.scenario) else sizing.ratio_now
    stops = sorted({*ratio_stops(drawn), *([] if own is None else [own])})
    return _hand(sizing, along(sizing.scenario, RATIO, stops), stated_ratio_text, own)


def _hand(sizing: Sizing, found: Along, written: Callable[[Any], str], own: float | None) -> Hand:
    """Numbers as columns (one number where all are the same), words as forms that a stop chooses from."""
    ranks = sizing.scenario.attn_dp_size
    by_key: dict[Any, int] = {}
    forms: list[dict[str, str]] = []
    form = []
    for runs, binding, refused in zip(found.runs.tolist(), found.binding, found.refused.tolist(), strict=True):
        key = "refused" if refused else (min(runs, 2), binding)
        if key not in by_key:
            by_key[key] = len(forms)
            forms.append(_forms(found.name, runs, None if refused else headline_form(runs, binding, ranks), binding))
        form.append(by_key[key])
    columns = {"clamp": found.clamp, "cap": found.kv_cap, "tokens": found.kv_tokens, "runs": found.runs}
    columns |= {"total": found.runs * ranks} if ranks > 1 else {}
    return {
        "axes": [{"input": found.name, "name": label(found.name), "at": list(found.at), "own": own}],
        "words": [written(value) for value in found.at],
        "L": count(sizing.scenario.L),
        "columns": {name: _shortest(column) for name, column in columns.items()},
        "forms": forms,
        "form": _shortest(np.array(form)),
    }


def _forms(name: str, runs: int, headline: str | None, binding: Any) -> dict[str, str]:
    """The headline, and the lines beside the line that is held; the first of them names the stop."""
    stop = "L = {at}" if name == "L" else "r = {at}"
    said = {"headline": REFUSED, "label": f"{stop}\nrefused"}
    if headline is not None:
        binds = BINDING_WORDS[binding] if runs else "not one fits"
        numbers = f"<b>{{runs}} run</b>, {binds}\nmamba clamp {{clamp}}, KV cap {{cap}}"
        said = {"headline": headline.replace("{L}", "{at}") if name == "L" else headline, "label": f"{stop}\n{numbers}"}
    return said


def _shortest(column: Any) -> Any:
    values = column.tolist()
    return values[0] if len(set(values)) == 1 else values
