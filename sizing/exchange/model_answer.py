"""The answer to a config.json, in the vocabulary of answer.py."""

from sizing.basics.units import count
from sizing.exchange.answer import EngineKind, InputKind, ModelAnswer, Notice
from sizing.models import Draft, Geometry, ModelRefusedError, kv_bytes_per_token, state_bytes
from sizing.models.kv import KvCacheDtype
from sizing.models.refusal import Kind
from sizing.models.summary import layers_in_words
from sizing.scenario.from_model import Widths, draft_bytes
from sizing.specification import token_equiv

# A width or a dtype that the model cannot have is a combination that the engine refuses.
KINDS: dict[Kind, EngineKind | InputKind] = {
    "unreadable": "unreadable",
    "missing": "unreadable",
    "wrong": "unreadable",
    "dense": "not_served",
    "draft": "not_served",
    "no_state_pool": "not_served",
    "not_served": "not_served",
    "unknown": "not_served",
    "layout": "flags",
}


def model_answer(geometry: Geometry, widths: Widths) -> ModelAnswer:
    """The bytes of a slot, of a token and of the model's own draft head [bytes per rank]. Raises ModelRefusedError."""
    slot = state_bytes(geometry, widths.attn_tp_size, widths.ssm, widths.conv).total
    token = kv_bytes_per_token(geometry, widths.attn_tp_size, widths.kv, widths.dcp_size)
    return ModelAnswer(
        words=layers_in_words(geometry),
        state_bytes_per_slot=slot,
        kv_bytes_per_token=token,
        draft_kv_bytes_per_token=draft_bytes(geometry, widths),
        token_equiv=token_equiv(slot, token) if token else None,
        family=geometry.family,
        state_layers=len(geometry.state_layers),
        kv_layers=len(geometry.kv_layers),
        is_draft=False,
    )


def draft_answer(draft: Draft, tp: int, dtype: KvCacheDtype) -> ModelAnswer:
    """A draft model's KV row [bytes per rank]; it keeps no state."""
    row = draft.row_bytes(tp, dtype)
    words = (
        f"{draft.architecture} is a draft model for --speculative-algorithm {draft.algorithm}: it keeps no state, and "
        f"a token of its {count(draft.layers)} layers takes {count(row)} bytes on a rank."
    )
    return _of_draft(words, draft_kv_bytes_per_token=row, kv_layers=draft.layers)


def unsized_draft_answer(refused: ModelRefusedError) -> ModelAnswer:
    """A draft model whose rows this tool has no rule for."""
    words = f"It is a draft model: it keeps no state. {refused}"
    return _of_draft(words, unknown=("draft_kv_bytes_per_token", "kv_layers"))


def _of_draft(words: str, **known: object) -> ModelAnswer:
    said = "This config.json is a draft model's. Size its target, and give this row beside it as draft KV bytes."
    notice = Notice(about="draft_config", words=said)
    return ModelAnswer.model_validate(
        {"words": words, "notices": (notice,), "state_layers": 0, "is_draft": True, **known}
    )
