"""What a sizing gives to other programs: the curves and the result as CSV and JSON, and a figure as Plotly's JSON.

Integers are exact. A CSV begins with lines after "#" that name the tool and every input with its unit, then comes one
line of column names with units, then the rows.
"""

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from sizing.answers.band import at_low_end
from sizing.answers.curves import ContextCurve, RatioCurve, context_grid, over_context, over_ratio
from sizing.answers.flip_points import flips
from sizing.answers.limit_panel import lifts
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing
from sizing.basics.frames import REQUESTS
from sizing.basics.problems import Refusal
from sizing.engine.split import Split
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.launch_flags import flags
from sizing.explain.unified_memory import unified_in_force
from sizing.explain.verdict import advice, answer_text
from sizing.figures.ratio import ratios_drawn
from sizing.figures.theme import PRODUCT
from sizing.scenario.inputs import INPUTS, Scenario
from sizing.version import tool_version

if TYPE_CHECKING:
    from pandas import DataFrame

SPLITS = ("now", "balanced", "default", "by_ratio", "pinned")  # the fields of Sizing that hold a split

# The unit of every number of a Sizing, and of the splits in it and their memory.
UNITS = {
    "slot_bytes": "bytes per rank",
    "ring_bytes": "bytes per rank",
    "ring_bytes_per_slot": "bytes per rank",
    "charged_slot_bytes": "bytes per rank",
    "drafts_charged": "tokens",
    "target_token_bytes": "bytes per rank",
    "draft_row_bytes": "bytes per rank",
    "token_bytes": "bytes per rank",
    "token_equiv": "tokens per slot",
    "ring_factor": "-",
    "r_star": "-",
    "r_star_specification": "-",
    "r_star_direct": "-",
    "ratio_now": "-",
    "pin_flag": "slots of the deployment",
    "raised_flag": "requests of the deployment",
    "gib_more": "requests per rank",
    "beyond": "bytes per rank",
}
SPLIT_UNITS = {
    "ratio": "-",
    "slots": "slots per rank",
    "clamp": "requests per rank",
    "kv_rest_bytes": "bytes per rank",
    "kv_rows": "rows per rank",
    "kv_tokens": "tokens",
    "kv_cap": "requests per rank",
    "kv_cap_whole_pages": "requests per rank",
    "admitted": "requests per rank",
    "runs": "requests per rank",
    "window_rows": "rows per rank",
    "window_cap": "requests per rank",
    "crossing": "tokens",
}
SEPARATORS = re.compile(r"[,;]")  # of cells, in one country or another; white space is one space already
MEMORY_UNIT = "bytes per rank"


def context_csv(sizing: Sizing) -> str:
    """Requests over context length, for the split that is set and for the balanced one."""
    return _csv(sizing.scenario, "requests over the context length L", context_frame(sizing))


def ratio_csv(sizing: Sizing) -> str:
    """Requests over the ratio at the scenario's L."""
    return _csv(sizing.scenario, "requests over --mamba-full-memory-ratio", over_ratios(sizing).frame())


def result_csv(sizing: Sizing) -> str:
    """Every number of the result, one a row; `split` is empty where it belongs to none."""
    return _csv(sizing.scenario, "the result", result_frame(sizing))


def context_frame(sizing: Sizing) -> "DataFrame":
    """One row a split, the one that is set and the balanced one, and context length."""
    from pandas import concat

    frames = {name: curve.frame() for name, curve in over_contexts(sizing).items()}
    if not frames:
        nothing = np.array([], np.int64)
        curve = ContextCurve(L=nothing, clamp=0, admitted=0, kv_cap=nothing, runs=nothing)
        frames = {"now": curve.frame()}
    return concat(frames, names=["split"]).reset_index("split").reset_index(drop=True)


def result_frame(sizing: Sizing) -> "DataFrame":
    """One row a number of the result, with its unit and the split it belongs to; `value` holds each as it is."""
    from pandas import DataFrame

    rows: list[tuple[Any, ...]] = [
        (name, unit, "", getattr(sizing, name)) for name, unit in {"S": "slots per request", **UNITS}.items()
    ]
    for name in SPLITS:
        rows += _split_rows(name, getattr(sizing, name))
    return DataFrame(rows, columns=["quantity", "unit", "split", "value"], dtype=object)


def _split_rows(name: str, split: Split | Refusal | None) -> list[tuple[Any, ...]]:
    if not isinstance(split, Split):
        return [("refusal", "", name, split.sentence)] if split else []
    rows = [(field, unit, name, getattr(split, field)) for field, unit in SPLIT_UNITS.items()]
    rows.append(("binding", "", name, split.binding.name))
    return rows + [(f"memory.{field}", MEMORY_UNIT, name, value) for field, value in split.memory.model_dump().items()]


def curves_json(sizing: Sizing) -> str:
    """Both curves with their inputs; the keys are those of the CSV."""
    units = {"L": "tokens", "ratio": "-", "clamp": REQUESTS, "admitted": REQUESTS, "kv_cap": REQUESTS, "runs": REQUESTS}
    return _json(
        {
            "tool": _tool(),
            "inputs": sizing.scenario.model_dump(mode="json"),
            "units": units,
            "over_context": {name: _lists(curve) for name, curve in over_contexts(sizing).items()},
            "over_ratio": _lists(over_ratios(sizing)),
        }
    )


def result_json(sizing: Sizing) -> str:
    """The verdict, the flags, limits, flips and advice, and every number: what the command line prints with --json."""
    found, best, safe = flags(sizing), recommended(sizing), at_low_end(sizing)
    one = unified_in_force(sizing)
    return _json(
        {
            "verdict": answer_text(sizing),
            "recommended": best.model_dump(mode="json", exclude={"scenario"}) if best else None,
            "flags": found.model_dump() if found else None,
            "unified": one._asdict() | {"found": one.found.model_dump(mode="json")} if one else None,
            "limits": [row.model_dump() for row in lifts(safe)],
            "flips": [turn.model_dump() for turn in flips(safe)],
            "advice": [item.model_dump() for item in advice(safe)],
            "sizing": sizing.model_dump(mode="json"),
            "answer": sizing_answer(sizing).model_dump(mode="json"),
        }
    )


def over_contexts(sizing: Sizing) -> dict[str, ContextCurve]:
    """The curve over L of the split that is set and of the balanced one, where the engine starts with it."""
    found = {"now": sizing.now, "balanced": sizing.balanced}
    return {name: _over_context(split, sizing.scenario.L) for name, split in found.items() if isinstance(split, Split)}


def _over_context(split: Split, own: int) -> ContextCurve:
    return over_context(split, np.union1d(context_grid(split), np.array([own], dtype=np.int64)))


def over_ratios(sizing: Sizing) -> RatioCurve:
    """The curve over r at the scenario's L, at the ratios of the figure and at the one that is set."""
    return over_ratio(sizing.scenario, np.union1d(ratios_drawn(sizing), [sizing.ratio_now]))


def _lists(curve: ContextCurve | RatioCurve) -> dict[str, Any]:
    """The arrays of a curve as lists; what is one number for all of it stays one."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in curve}


def _csv(scenario: Scenario, what: str, frame: "DataFrame") -> str:
    header = "".join(f"# {line}\n" for line in (f"{_tool()}: {what}", *_input_lines(scenario)))
    return header + str(frame.to_csv(index=False, lineterminator="\n"))


def _input_lines(scenario: Scenario) -> list[str]:
    """Every input with its unit. What separates cells would make one of what follows it, which can be a formula."""
    found = []
    for name, value in scenario.model_dump(mode="json").items():
        written = value if isinstance(value, str) else json.dumps(value)
        unit = f" [{INPUTS[name].unit}]" if INPUTS[name].unit else ""
        found.append(f"{name} = {' '.join(SEPARATORS.sub(' / ', written).split())}{unit}".rstrip())
    return found


def _tool() -> str:
    return f"{PRODUCT} {tool_version()}"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
