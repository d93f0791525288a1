"""`rest`: what both pools share on one rank, from the memory that is free before and after the weights.

Source: engine-sizing.md section 1, rest-before-boot.md section 3.4 (`_profile_available_bytes`, SGLang 0.5.23).
"""

from sizing.releases.rules import Release, rules_of


def rest_gib(
    release: Release, before_gib: float, after_gib: float, mem_fraction_static: float, *, multimodal: bool = False
) -> float:
    """rest [GiB per rank]: free after the weights, less the slack, less a multimodal model's cache since 0.5.18.

    `before_gib` is free memory before the weights, `after_gib` when the pools are sized, each the least of all ranks.
    Sums are taken in the engine's order, in floats.

    >>> rest_gib("0.5.23", 139.0, 66.55, 0.8, multimodal=True)
    38.65234375
    """
    reserved = rules_of(release).multimodal_cache_mib / 1024 if multimodal else 0.0
    return after_gib - before_gib * (1 - mem_fraction_static) - reserved
