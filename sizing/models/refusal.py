"""Why a configuration gives no bytes: one sentence that names the field, and the kind of the refusal."""

from typing import Literal

from sizing.basics.problems import Problem

Kind = Literal[
    "unreadable",  # not JSON, not an object, too large or too deep
    "missing",  # a field that the family needs
    "wrong",  # a field with a value that cannot be
    "dense",  # attention layers only, in every model of this type
    "draft",  # a draft model (drafts.py)
    "no_state_pool",  # a hybrid type whose layers are all attention
    "not_served",  # hybrid, but SGLang 0.5.23 has no such model
    "unknown",  # a model type this tool has no rule for
    "layout",  # a TP, DCP or PP width or a KV dtype that the model cannot have
]


class ModelRefusedError(Exception):
    """Raised by every function of `sizing.models` for input it cannot size; nothing else is raised."""

    def __init__(self, kind: Kind, where: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.problem = Problem(where=where, sentence=sentence)
