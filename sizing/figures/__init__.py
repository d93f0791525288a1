"""Figures: a Sizing and its curves in, a plain Plotly dictionary out. Nothing here computes a new number."""

from sizing.figures.crossing import crossing_figure
from sizing.figures.hand import Hand, hand_over_context, hand_over_ratio
from sizing.figures.layers import layers_figure, slots_figure, widths_figure
from sizing.figures.memory import memory_figure
from sizing.figures.occupancy import occupancy_figure
from sizing.figures.ratio import ratio_figure, ratios_drawn
from sizing.figures.sweep import sweep_figure, sweep_hand
from sizing.figures.theme import DARK, LIGHT, painted

__all__ = [
    "DARK",
    "LIGHT",
    "Hand",
    "crossing_figure",
    "hand_over_context",
    "hand_over_ratio",
    "layers_figure",
    "memory_figure",
    "occupancy_figure",
    "painted",
    "ratio_figure",
    "ratios_drawn",
    "slots_figure",
    "sweep_figure",
    "sweep_hand",
    "widths_figure",
]
