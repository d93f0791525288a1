"""No label of a figure is struck, cut, small or faint: random deployments, light and dark, page widths and picture.

In the suite a fixed sample; all 500 with `SIZING_ALL_LABELS=1 python -m pytest tests/browser/test_labels.py`.
"""

import json
import os
import random
from collections.abc import Iterator
from typing import Any, get_args

from playwright.sync_api import Page, expect

from sizing import RefusedError, Scenario, Sizing, solve
from sizing.answers.sweep import SweepInput, axis_of
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.figures import DARK, LIGHT, crossing_figure, memory_figure, painted, ratio_figure, sweep_figure
from sizing.figures.theme import Figure
from sizing.scenario.from_model import names
from sizing.scenario.inputs import read_scenario
from tests.browser.labels import CLIPPED, FAINT, OVERLAPPING, STRUCK

ALL, SAMPLE = 500, 10
# Deployments of the suite besides those drawn: few and many requests, and labels that lie near one another.
CHOSEN: list[dict[str, Any]] = [
    {},
    {"D": 4},
    {"dcp_size": 8, "L": 262_144},
    {"L": 512},
    {"rest_gib": 3, "L": 131_072},
    {"L": 32_768, "D": 4, "mamba_ssm_dtype": "bfloat16"},
    {
        "model": "nvidia/Nemotron-H-56B-Base-8K",
        "L": 53_471,
        "D": 4,
        "attn_dp_size": 4,
        "rest_gib": 44.948,
        "mamba_full_memory_ratio": 0.15382,
        "mamba_ssm_dtype": "bfloat16",
    },  # a step of the figure over r beside a label
]
# [px] What a page of 1440 and one of 1920 leave each figure, and a picture; its height, None for the figure's own.
SIZES: dict[str, dict[str, tuple[int, int | None]]] = {
    "1440": {"crossing": (980, None), "ratio": (482, None), "memory": (482, None), "sweep": (980, None)},
    "1920": {"crossing": (1460, None), "ratio": (722, None), "memory": (722, None), "sweep": (1460, None)},
    "picture": dict.fromkeys(("crossing", "ratio", "memory", "sweep"), (1280, 720)),
}
# Draws beside the page, with the page's fonts.
DRAW = """async ([figures, dark]) => {
  document.querySelectorAll('[data-drawn]').forEach((old) => old.remove());
  document.querySelectorAll('[data-figure]').forEach((own) => own.removeAttribute('data-figure'));
  for (const [name, figure, width, height] of figures) {
    const place = document.body.appendChild(document.createElement('div'));
    place.dataset.figure = place.dataset.drawn = name;
    place.style.cssText = `position: absolute; top: 0; left: 0; width: ${width}px`;
    await Plotly.newPlot(place, figure.data, {...figure.layout, width, height: height ?? figure.layout.height});
  }
}"""


def scenario(seed: int) -> Sizing | None:
    """Any deployment, small and large; None where its flags are refused."""
    draw = random.Random(seed)

    def around(low: float, high: float) -> float:
        return float(f"{low * (high / low) ** draw.random():.5g}")

    values: dict[str, Any] = {
        "L": int(around(128, 2**21)),
        "rest_gib": around(0.5, 400),
        "D": draw.choice([0, 0, 0, 1, 4, 8]),
        "dcp_size": draw.choice([1, 1, 1, 2, 8]),
        "attn_dp_size": draw.choice([1, 1, 1, 2, 4]),
        "tp_size": 8,
        "split": draw.choice(["ratio", "ratio", "ratio", "balanced", "pin"]),
        "mamba_full_memory_ratio": draw.choice([0.9, 0.9, around(0.01, 50)]),
        "max_mamba_cache_size": int(around(5, 5000)),
        "mamba_ssm_dtype": draw.choice(get_args(StateDtype)),
        "kv_cache_dtype": draw.choice(get_args(KvDtype)),
        "max_running_requests": draw.choice([None, None, None, int(around(1, 1000))]),
        "disable_radix_cache": draw.random() < 0.08,
        "max_total_tokens": draw.choice([None] * 8 + [int(around(100, 1e6))]),
        "model": draw.choice(names()),
    }
    found = read_scenario(values)
    try:
        return solve(found) if isinstance(found, Scenario) else None
    except RefusedError:
        return None


def sizings() -> Iterator[tuple[int, Sizing]]:
    """Deployments that are drawn, each with its seed; the chosen ones count down from -1."""
    yield from ((-at, solve(Scenario.model_validate(values))) for at, values in enumerate(CHOSEN, start=1))
    wanted, seed = ALL if "SIZING_ALL_LABELS" in os.environ else SAMPLE, 0
    while wanted:
        if (found := scenario(seed)) is not None:
            wanted -= 1
            yield seed, found
        seed += 1


def figures(seed: int, sizing: Sizing) -> dict[str, Figure]:
    """The figures of a deployment, and a sweep of two inputs."""
    pair = random.Random(seed).sample(get_args(SweepInput), 2)
    made = {"crossing": crossing_figure(sizing), "ratio": ratio_figure(sizing), "memory": memory_figure(sizing)}
    try:
        x, y = (axis_of(sizing.scenario, name, 60) for name in pair)
        return made | {"sweep": sweep_figure(sizing, x, y)}
    except (ValueError, RefusedError):  # two inputs that do not go together
        return made


def test_no_label_is_struck(page: Page, base_url: str) -> None:
    """Each word of each figure, in light and in dark: nothing runs through it, it is not cut, and can be read."""
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(base_url)
    expect(page.locator('[data-figure="memory"] .main-svg').first).to_be_visible()
    wrong: list[str] = []
    for number, (seed, sizing) in enumerate(sizings()):
        dark = number % 2 == 1
        drawn = json.loads(
            json.dumps({name: painted(each, DARK if dark else LIGHT) for name, each in figures(seed, sizing).items()})
        )
        for size, sizes in SIZES.items():
            page.evaluate(DRAW, [[(name, figure, *sizes[name]) for name, figure in drawn.items()], dark])
            found = [each for asked in (STRUCK, CLIPPED, OVERLAPPING, FAINT) for each in page.evaluate(asked)]
            wrong += [f"seed {seed}, {size}: {each}" for each in found]
    assert wrong == []
