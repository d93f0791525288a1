"""Checkpoint variants: how many bytes a parameter has on the GPU.

Source: rest-before-boot.md rule 35.
"""

from fractions import Fraction
from typing import Literal, NamedTuple

from sizing.memory.weights.pieces import Precision
from sizing.models.fields import Fields

Variant = Literal["bf16", "fp8", "mxfp4", "nvfp4"]
QUANTISED = "quantization_config"
BF16 = Fraction(2)
# Block FP8: one byte, and a float32 scale for each block of 128 x 128.
FP8 = 1 + Fraction(4, 128 * 128)
# 4 bits, and one byte of scale for 32 (MXFP4) or 16 (NVFP4) of them.
MXFP4, NVFP4 = Fraction(1, 2) + Fraction(1, 32), Fraction(1, 2) + Fraction(1, 16)


class Widths(NamedTuple):
    """Bytes of one parameter by what it is; plain ones (embedding, head, vision, routers, norms) stay bf16."""

    short: str
    words: str
    linear: Fraction
    expert: Fraction

    def of(self, precision: Precision) -> Fraction:
        """Bytes of one parameter."""
        return {"linear": self.linear, "expert": self.expert, "plain": BF16}[precision]


VARIANTS: dict[Variant, Widths] = {
    "bf16": Widths("bf16", "bf16", BF16, BF16),
    "fp8": Widths("FP8 block", "FP8 in blocks of 128 x 128; embedding, head, vision and routers bf16", FP8, FP8),
    "mxfp4": Widths("MXFP4 experts", "routed experts MXFP4, all else bf16", BF16, MXFP4),
    "nvfp4": Widths("NVFP4 experts", "routed experts NVFP4, all else bf16", BF16, NVFP4),
}
FOUR_BIT: tuple[Variant, ...] = ("mxfp4", "nvfp4")


def variant_of(outer: Fields, inner: Fields) -> Variant | None:
    """What a config.json says its weights are stored as; None where this tool has no rule for it."""
    section = next((place.inner(QUANTISED) for place in (outer, inner) if place.is_object(QUANTISED)), None)
    if section is None:
        return "bf16"
    method = section.text("quant_method") or ""
    if method == "fp8":
        return "fp8"
    name = " ".join(filter(None, (section.text("format"), section.text("quant_algo"), method))).lower()
    return next((variant for variant in FOUR_BIT if variant in name), None)
