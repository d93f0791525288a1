"""What is loaded on one rank before the pools: weights, and the draft where the release counts it.

Source: rest-before-boot.md sections 3.2 and 3.3.
"""

from typing import NamedTuple

from sizing.memory.before_load import NotEstimatedError
from sizing.memory.release import minor
from sizing.memory.weights.per_rank import Ranks, weights_per_rank
from sizing.memory.weights.table import Counted
from sizing.memory.weights.variants import FOUR_BIT, VARIANTS, Variant

DRAFT_COUNTED_SINCE = 14
OWN_DRAFTS = ("EAGLE", "NEXTN")  # run on the checkpoint's own MTP layer unless a draft model is named
WITHOUT_WEIGHTS = ("NGRAM",)


class Loaded(NamedTuple):
    """Bytes on one rank, on the stage that holds most."""

    weights_bytes: int
    weights_source: str
    draft_bytes: int
    draft_source: str
    four_bit: bool
    """Whether experts are stored in 4 bits, which some kernels repack."""
    parts: tuple[tuple[str, int], ...] = ()
    """What the weights are made of, where they are counted: name and bytes."""


def counted(
    model: Counted,
    variant: Variant,
    ranks: Ranks,
    release: str,
    speculative_algorithm: str | None = None,
    draft_bytes: int | None = None,
) -> Loaded:
    """Weights from the model's geometry; `draft_bytes` is a separate draft model's size on one rank.

    Raises ModelRefusedError for stages, a variant or a draft the model cannot have, NotEstimatedError for a draft
    whose bytes are not known.
    """
    own, separate, words = _draft(speculative_algorithm, draft_bytes, release, model.draft is not None)
    held = weights_per_rank(model, variant, ranks, draft=own)
    drafted = dict(held.parts).get("draft", 0)
    stage = f", stage {held.stage + 1} of {ranks.pp_size}, the heaviest" if ranks.pp_size > 1 else ""
    return Loaded(
        weights_bytes=held.bytes - drafted,
        weights_source=f"counted from config.json, {VARIANTS[variant].words}{stage}",
        draft_bytes=drafted + separate,
        draft_source=words,
        four_bit=variant in FOUR_BIT,
        parts=tuple(part for part in held.parts if part[0] != "draft"),
    )


def typed(
    total_bytes: int,
    ranks: Ranks,
    release: str,
    four_bit: bool = False,
    speculative_algorithm: str | None = None,
    draft_bytes: int | None = None,
) -> Loaded:
    """A checkpoint's bytes spread evenly over TP x PP; what ranks repeat is not in it.

    Raises NotEstimatedError for a draft whose bytes are not known.
    """
    _, separate, words = _draft(speculative_algorithm, draft_bytes, release, has_own=False)
    width = ranks.tp_size * ranks.pp_size
    spread = "" if width == 1 else f", spread evenly over {width:,} ranks: what ranks repeat is not counted"
    return Loaded(-(-total_bytes // width), f"typed{spread}", separate, words, four_bit)


def _draft(algorithm: str | None, bytes: int | None, release: str, has_own: bool) -> tuple[bool, int, str]:
    """Whether the checkpoint's own draft is loaded, the bytes of a separate one, and the words for it."""
    if algorithm is None or algorithm in WITHOUT_WEIGHTS:
        return False, 0, "none" if algorithm is None else f"{algorithm} has no weights"
    if minor(release) < DRAFT_COUNTED_SINCE:
        return False, 0, f"loaded after the pools in {release}: the slack pays"
    if bytes is not None:
        return False, bytes, "typed"
    if algorithm in OWN_DRAFTS and has_own:
        return True, 0, "the checkpoint's MTP layer with its own embedding and head"
    raise NotEstimatedError("draft", f"The draft of {algorithm} cannot be counted: give its bytes on one rank.")
