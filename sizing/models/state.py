"""The state of one layer and one request: shapes of the conv and of the temporal (SSM) part at a TP width.

One small model for each way of keeping state. A shape is refused where the engine would stop with an assertion.
Source: model-geometry.md sections 2 and 3 (`Mamba2StateShape`, `KimiLinearStateShape`, SGLang 0.5.23).
"""

import math
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from sizing.models.kv import heads_here
from sizing.models.refusal import ModelRefusedError


class Shapes(NamedTuple):
    """One layer's state tensors on one rank, for one request."""

    conv: tuple[tuple[int, int], ...]
    temporal: tuple[int, int, int]

    @property
    def conv_elements(self) -> int:
        """Elements of all conv tensors."""
        return sum(math.prod(shape) for shape in self.conv)

    @property
    def temporal_elements(self) -> int:
        """Elements of the temporal tensor."""
        return math.prod(self.temporal)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Mamba2State(_Frozen):
    """Mamba2 and GDN. For GDN inner = value heads x value head dim, groups = key heads, state_size = key head dim."""

    kind: Literal["mamba2"] = "mamba2"
    inner: int
    groups: int
    heads: int
    head_dim: int
    state_size: int
    kernel: int

    def shapes(self, tp: int) -> Shapes:
        """conv ((inner + 2 x groups x state_size) / tp, kernel - 1), temporal (heads / tp, head_dim, state_size).

        Groups that tp does not divide become exactly tp: 1 or 2 are replicated, 6 at tp 4 are cut to 4
        (trap 6 of model-geometry.md).
        """
        groups = self.groups if self.groups % tp == 0 else tp
        width = divided(self.inner + 2 * groups * self.state_size, tp, "The conv channels")
        heads = divided(self.heads, tp, "The state heads")
        return Shapes(conv=((width, self.kernel - 1),), temporal=(heads, self.head_dim, self.state_size))


class KdaState(_Frozen):
    """Kimi delta attention: keys, queries and values of one width, each with a short conv."""

    kind: Literal["kda"] = "kda"
    heads: int
    head_dim: int
    kernel: int

    def shapes(self, tp: int) -> Shapes:
        """conv (kernel - 1, 3 x heads x head_dim / tp), temporal (heads / tp, head_dim, head_dim)."""
        width = divided(self.heads * self.head_dim, tp, "The KDA channels")
        heads = divided(self.heads, tp, "The KDA heads")
        return Shapes(conv=((self.kernel - 1, 3 * width),), temporal=(heads, self.head_dim, self.head_dim))


class LightningState(_Frozen):
    """Lightning attention: no conv."""

    kind: Literal["lightning"] = "lightning"
    heads: int
    head_dim: int

    def shapes(self, tp: int) -> Shapes:
        """temporal (heads / tp, head_dim, head_dim); the conv tensor is there and empty."""
        heads = divided(self.heads, tp, "The lightning heads")
        return Shapes(conv=((0, 0),), temporal=(heads, self.head_dim, self.head_dim))


class ShortConvState(_Frozen):
    """A short convolution alone (LFM2)."""

    kind: Literal["short_conv"] = "short_conv"
    hidden: int
    kernel: int

    def shapes(self, tp: int) -> Shapes:
        """conv (hidden / tp, kernel - 1); the temporal tensor is there and empty."""
        width = divided(self.hidden, tp, "The conv channels")
        return Shapes(conv=((width, self.kernel - 1),), temporal=(1, self.hidden, 0))


class Mamba1State(_Frozen):
    """Mamba-1: a full-rank state, and a conv over the inner width only."""

    kind: Literal["mamba1"] = "mamba1"
    inner: int
    state_size: int
    kernel: int

    def shapes(self, tp: int) -> Shapes:
        """conv (inner / tp, kernel - 1), temporal (inner / tp, 1, state_size)."""
        width = divided(self.inner, tp, "The inner width")
        return Shapes(conv=((width, self.kernel - 1),), temporal=(width, 1, self.state_size))


class CcaState(_Frozen):
    """Compressed convolutional attention (ZAYA): the second tensor is the whole hidden state on every rank."""

    kind: Literal["cca"] = "cca"
    channels: int
    padding: int
    hidden: int

    def shapes(self, tp: int) -> Shapes:
        """conv (channels / tp, padding) and (hidden, 1); no temporal part."""
        width = divided(self.channels, tp, "The CCA channels")
        return Shapes(conv=((width, self.padding), (self.hidden, 1)), temporal=(1, 1, 0))


class SconvState(_Frozen):
    """Inkling's short convs before keys and values of both attention kinds, and on two hidden streams.

    The streams are whole on every rank: sharding them (scattered sconv) is an option that is off by default.
    """

    kind: Literal["sconv"] = "sconv"
    kv_heads: int
    head_dim: int
    swa_kv_heads: int
    swa_head_dim: int
    hidden: int
    kernel: int

    def shapes(self, tp: int) -> Shapes:
        """Six tensors of kernel - 1 rows: twice the full KV width, twice the sliding one, twice hidden."""
        full = heads_here(self.kv_heads, tp, 1) * self.head_dim
        sliding = heads_here(self.swa_kv_heads, tp, 1) * self.swa_head_dim
        widths = (full, full, sliding, sliding, self.hidden, self.hidden)
        return Shapes(conv=tuple((self.kernel - 1, width) for width in widths), temporal=(0, 0, 0))


State = Mamba2State | KdaState | LightningState | ShortConvState | Mamba1State | CcaState | SconvState


def divided(count: int, tp: int, what: str) -> int:
    """`count` on one of `tp` ranks. Raises ModelRefusedError (layout) where tp does not divide it."""
    if count % tp:
        raise ModelRefusedError(
            "layout",
            "tp",
            f"{what} cannot be spread over attention TP {tp}: {count} is not divisible by {tp}.",
        )
    return count // tp
