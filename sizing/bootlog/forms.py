"""The line forms, each a name, the text it reads, what it gives and the releases that print it.

Source: boot-log-formats.md; the engine's refusals are those of engine-sizing.md sections 4 and 8.
A number counts only where the text goes on behind it: one at a cut may have lost digits.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from sizing.basics.problems import RefusalKind
from sizing.bootlog import said
from sizing.bootlog.measure import Printed, printed
from sizing.bootlog.said import Said
from sizing.releases.rules import LATEST, RELEASES, Release

FIRST = RELEASES[0]
Fields = dict[str, str | None]

# Bounds for hostile input; a real count has up to 8 digits, a real size 4 and its decimals.
WHOLE, SIZE = r"\d{1,15}", r"\d{1,9}(?:\.\d{1,6})?"


class Form(NamedTuple):
    """One form of one line."""

    name: str
    pattern: re.Pattern[str]
    read: Callable[[Fields], Said]
    since: Release = FIRST
    until: Release = LATEST
    cut: bool = False
    """A line that lost its end; it says nothing of the release."""

    @property
    def releases(self) -> frozenset[Release]:
        """The releases that print this form."""
        return frozenset(RELEASES[RELEASES.index(self.since) : RELEASES.index(self.until) + 1])


def _pattern(text: str) -> re.Pattern[str]:
    """`<name:n>` is a whole number, `<name:g>` a size in GB, `<name:w>` a word with dots."""
    kinds = {"n": WHOLE, "g": SIZE, "w": r"[\w.]{1,80}"}
    text = re.sub(r"<(\w+):([ngw])>", lambda found: f"(?P<{found[1]}>{kinds[found[2]]})", text)
    return re.compile(text.replace("_GB", " ?GB"))


def _size(found: Fields, name: str) -> Printed | None:
    text = found.get(name)
    return printed(text) if text is not None else None


def _must(found: Fields, name: str) -> Printed:
    return printed(found[name] or "0")


def _whole(found: Fields, name: str) -> int | None:
    text = found.get(name)
    return int(text) if text is not None else None


def _count(found: Fields, name: str) -> int:
    return int(found[name] or 0)


# 2 Weights. The quantisation part is a variable number of `k=v, ` pieces.
_END = r"avail mem=<avail:g>_GB, mem usage=(?:<usage:g>)_GB"
_QUANT = r"(?:(?!dtype|avail mem)\w{1,40}=[^,=]{1,60}, ){0,8}"


def _weights_end(found: Fields) -> Said:
    return said.WeightsEnd(found.get("model"), _size(found, "avail"))


WEIGHTS = (
    Form(
        "weights begin",
        _pattern(r"Load weight begin\. avail mem=<avail:g>_GB"),
        lambda found: said.WeightsBegin(_must(found, "avail")),
    ),
    Form(
        "weights end",
        _pattern(rf"Load weight end\. elapsed={SIZE} s, type=<model:w>, {_QUANT}{_END}"),
        _weights_end,
        since="0.5.10",
    ),
    Form(
        "weights end with a dtype",
        _pattern(rf"Load weight end\. elapsed={SIZE} s, type=<model:w>, dtype=[\w.]+, {_END}"),
        _weights_end,
        since="0.5.9",
        until="0.5.9",
    ),
    Form(
        "weights end without a time",
        _pattern(rf"Load weight end\. type=<model:w>, dtype=[\w.]+, {_END}"),
        _weights_end,
        until="0.5.8",
    ),
    Form(
        "weights end, cut",
        _pattern(r"Load weight end\b(?:[^\[]{0,200}?type=<model:w>(?=[,\s]))?(?:[^\[]{0,200}?avail mem=<avail:g>_GB)?"),
        _weights_end,
        cut=True,
    ),
)

# 3 Warnings from sizing.
WARNINGS = (
    Form(
        "capped by the state pool",
        _pattern(
            r"max_running_requests is capped to <requests:n> by the mamba state cache "
            r"\(max_mamba_cache_size=<slots:n>, <S:n> state slots per request\)"
        ),
        lambda found: said.Capped(_count(found, "requests"), _count(found, "slots"), _count(found, "S")),
        since="0.5.17",
    ),
    Form(
        "reduced by KV",
        _pattern(
            r"max_running_requests was reduced from the requested <asked:n> to <requests:n> \(per dp worker\) "
            r"due to the available KV cache capacity"
        ),
        lambda found: said.Reduced(_count(found, "asked"), _count(found, "requests")),
        since="0.5.14",
    ),
    Form(
        "max_total_tokens lowered",
        _pattern(r"max_total_tokens=<asked:n> is larger than the profiled value <profiled:n>\."),
        lambda found: said.TokensLowered(_count(found, "asked"), _count(found, "profiled")),
    ),
    Form(
        "finalized requests",
        _pattern(
            r"Max concurrent requests \(per dp worker\) from the finalized token capacity: max_num_reqs=<requests:n>\."
        ),
        lambda found: said.Finalized(_count(found, "requests")),
        since="0.5.13",
        until="0.5.13",
    ),
)


# 4 State pool. No space before GB, no comma before intermediate_; both are allowed, for lines typed by hand.
def _state(found: Fields) -> Said:
    sizes = (_size(found, name) for name in ("conv", "ssm", "draft_ssm", "draft_conv"))
    return said.StatePool(_whole(found, "slots"), *sizes)


_STATE_SIZES = (
    r"conv_state size: <conv:g>_GB, ssm_state size: <ssm:g>_GB"
    r"(?:,? intermediate_ssm_state_cache size: <draft_ssm:g>_GB,? "
    r"intermediate_conv_window_cache size: <draft_conv:g>_GB)?"
)
STATE = (
    Form(
        "state pool", _pattern(rf"Mamba Cache is allocated\. max_mamba_cache_size: <slots:n>, {_STATE_SIZES}"), _state
    ),
    Form("state pool without a count", _pattern(rf"Mamba Cache is allocated\. {_STATE_SIZES}"), _state, cut=True),
    Form(
        "state pool, cut",
        _pattern(r"Mamba Cache is allocated\. max_mamba_cache_size: <slots:n>(?=[,\s])"),
        _state,
        cut=True,
    ),
    Form(
        "unified pool",
        _pattern(
            r"\[unified-memory-pool\][^\n]{0,400}?total_bytes=<bytes:n>, max_total_num_tokens=<tokens:n>, "
            r"max_mamba_cache_size=<slots:n>, max_num_reqs=<requests:n>(?=[^\d])"
        ),
        lambda found: said.Unified(*(_count(found, name) for name in ("bytes", "tokens", "slots", "requests"))),
    ),
)


# 4 ReplaySSM rings, with three decimals. The engine writes GDN for KDA as well.
def _ring(found: Fields, fold: bool | None) -> Said:
    names = ("d", "k", "g", "rawv", "rawk", "beta")
    sizes = tuple(size for size in (_size(found, name) for name in names) if size is not None)
    return said.Ring(_count(found, "length"), fold, sizes)


_RING = "ReplaySSM ring buffers allocated "
_RINGS = r"d=<d:g>_GB,? k=<k:g>_GB,? g=<g:g>_GB"
_RAW = r",? rawv=<rawv:g>_GB,? rawk=<rawk:g>_GB"
_BETA = r",? beta=<beta:g>_GB"
RINGS = (
    Form(
        "ring of drafts",
        _pattern(rf"{_RING}\(L=<length:n>\): {_RINGS}{_RAW}{_BETA}"),
        partial(_ring, fold=None),
        since="0.5.16",
        until="0.5.16",
    ),
    Form(
        "ring",
        _pattern(rf"{_RING}\(L=<length:n>\): {_RINGS}"),
        partial(_ring, fold=None),
        since="0.5.15",
        until="0.5.16",
    ),
    Form(
        "ring of KDA",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=True\): {_RINGS}(?:{_RAW}(?:{_BETA})?)?"),
        partial(_ring, fold=True),
        since="0.5.17",
    ),
    Form(
        "ring of GDN",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=False\): {_RINGS}{_RAW}(?!,? beta=)"),
        partial(_ring, fold=False),
        since="0.5.20",
    ),
    Form(
        "ring of GDN, or for decode",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=False\): {_RINGS}(?:{_RAW}{_BETA})?"),
        partial(_ring, fold=False),
        since="0.5.17",
    ),
)


# 5 KV pool. MLA prints one size, MHA and GQA two; the dtype since 0.5.13; a space before GB.
def _kv(found: Fields, reserved: bool = False) -> Said:
    sizes = tuple(size for size in (_size(found, name) for name in ("kv", "k", "v")) if size is not None)
    return said.KvPool(_count(found, "rows"), sizes, found.get("dtype"), reserved)


_KV = r"KV Cache is allocated\. "
_ONE, _TWO = "KV size: <kv:g>_GB", "K size: <k:g>_GB, V size: <v:g>_GB"
KV = (
    Form("KV pool of MLA", _pattern(rf"{_KV}dtype: <dtype:w>, #tokens: <rows:n>, {_ONE}"), _kv, since="0.5.13"),
    Form("KV pool of GQA", _pattern(rf"{_KV}dtype: <dtype:w>, #tokens: <rows:n>, {_TWO}"), _kv, since="0.5.13"),
    Form("KV pool of MLA without a dtype", _pattern(rf"{_KV}#tokens: <rows:n>, {_ONE}"), _kv, until="0.5.12"),
    Form("KV pool of GQA without a dtype", _pattern(rf"{_KV}#tokens: <rows:n>, {_TWO}"), _kv, until="0.5.12"),
    Form(
        "KV pool, reserved",
        _pattern(rf"KV Cache VA upper bound\. dtype: <dtype:w>, #tokens: <rows:n>, (?:{_ONE}|{_TWO})"),
        partial(_kv, reserved=True),
        since="0.5.18",
    ),
    Form("KV pool, cut", _pattern(rf"{_KV}(?:dtype: <dtype:w>, )?#tokens: <rows:n>,"), _kv, cut=True),
    Form("no KV pool", _pattern(r"KV Cache skipped \(no-op pool\)"), lambda found: said.NoKvPool(), since="0.5.12"),
    # Not in boot-log-formats.md: seen in a field report of 0.5.9, before the KV line itself named the dtype.
    Form("KV dtype", _pattern(r"Using KV cache dtype: <dtype:w>"), lambda found: said.KvDtype(found["dtype"] or "")),
)

# 6 What is left, and 8 graph capture.
MEMORY = (
    Form(
        "pools end",
        _pattern(r"Memory pool end\. avail mem=<avail:g>_GB"),
        lambda found: said.PoolEnd(_must(found, "avail")),
    ),
    Form(
        "capture",
        _pattern(
            r"Capture [\w ]{1,60}(?:decode|verify|prefill) CUDA graph (?:begin|end)\."
            r"[^\[]{0,200}?avail mem=<avail:g>_GB"
        ),
        lambda found: said.Capture(_must(found, "avail")),
        since="0.5.14",
    ),
    Form(
        "capture up to 0.5.13",
        _pattern(r"Capture cuda graph (?:begin|end)\.[^\[]{0,200}?avail mem=<avail:g>_GB"),
        lambda found: said.Capture(_must(found, "avail")),
        until="0.5.13",
    ),
)

# 7 Post-capture sizing.
AFTER_CAPTURE = (
    Form(
        "post-capture pool",
        _pattern(
            r"Post-capture KV sizing: KV cache allocated\. dtype: <dtype:w>, #tokens: <rows:n>, KV size: <kv:g>_GB"
        ),
        lambda found: said.AfterCapture(_whole(found, "rows"), _size(found, "kv"), found.get("dtype")),
        since="0.5.16",
    ),
    Form(
        "post-capture tokens",
        _pattern(r"Post-capture KV sizing: full_layer_tokens=<rows:n>, swa_layer_tokens="),
        lambda found: said.AfterCapture(rows=_whole(found, "rows")),
        since="0.5.16",
    ),
    Form(
        "post-capture tokens of 0.5.16",
        _pattern(r"Post-capture KV sizing: max_total_num_tokens=<rows:n>, free memory="),
        lambda found: said.AfterCapture(rows=_whole(found, "rows")),
        since="0.5.16",
        until="0.5.16",
    ),
    Form(
        "post-capture requests",
        _pattern(rf"Post-capture KV sizing: max_running_requests {WHOLE} -> <requests:n>(?=\D)"),
        lambda found: said.AfterCapture(requests=_whole(found, "requests")),
        since="0.5.16",
    ),
)


# 9 Summary: the keys after the first may be cut off.
def _summary(found: Fields) -> Said:
    pairs = dict(re.findall(rf", (\w+)=({SIZE} GB|{SIZE}(?=[^\d.]))", found.get("pairs") or ""))
    whole = {key: int(text) for key, text in pairs.items() if text.isdecimal() and len(text) <= 15}
    memory = next((text for key, text in pairs.items() if key.startswith("available_") and text.endswith(" GB")), None)
    return said.Summary(
        _count(found, "tokens"),
        whole.get("max_running_requests"),
        whole.get("context_len"),
        whole.get("chunked_prefill_size"),
        printed(memory.removesuffix(" GB")) if memory else None,
    )


SUMMARY = (
    Form(
        "context is longer than the pool",
        _pattern(r"KV pool holds <tokens:n> tokens, fewer than --context-length <context:n>(?=\D)"),
        lambda found: said.ContextShort(_count(found, "tokens"), _count(found, "context")),
        since="0.5.23",
    ),
    Form(
        "summary",
        _pattern(
            r"max_total_num_tokens=<tokens:n>(?![\d.])"
            rf"(?P<pairs>(?:, \w{{1,40}}=-?{SIZE}(?: GB)?(?![\d.]))*(?:[^\d.]|(?<=GB)$))"
        ),
        _summary,
    ),
)


# Refusals; they arrive inside a traceback. `MB` is MiB (engine-sizing.md section 8).
def _refused(found: Fields, kind: RefusalKind) -> Said:
    return said.Refused(kind, {name: float(text) for name, text in found.items() if text is not None})


def _refusal(kind: RefusalKind, text: str, since: Release = FIRST) -> Form:
    return Form(f"refusal: {kind}", _pattern(text), partial(_refused, kind=kind), since=since)


REFUSALS = (
    _refusal(
        "no_state_memory",
        r"Not enough GPU memory for hybrid \(mamba/linear-attention\) state cache\."
        rf"(?: Computed max_mamba_cache_size=(?P<max_mamba_cache_size>-?{WHOLE}) "
        rf"\(total_rest_memory=(?P<total_rest_memory>-?{SIZE}) GB, "
        r"mamba_cache_per_req=<mamba_cache_per_req:g> MB\))?",
        since="0.5.13",
    ),
    _refusal(
        "no_kv_memory",
        r"Loaded weights leave no GPU memory for the KV cache(?: under --mem-fraction-static=<mem_fraction_static:g>"
        r"(?=\. |[^\d.]))?",
        since="0.5.14",
    ),
    _refusal("no_tokens", r"Not enough memory\. Please try to increase --mem-fraction-static"),
    _refusal(
        "no_requests",
        r"Hybrid \(mamba/linear-attention\) state cache is too small to serve any requests\."
        rf"(?: max_mamba_cache_size=(?P<max_mamba_cache_size>-?{WHOLE}), mamba_ratio=<mamba_ratio:n>(?=,))?",
        since="0.5.13",
    ),
    _refusal(
        "flags",
        r"no_buffer only supports page_size=1|no_buffer do not support overlap schedule"
        r"|Lazy extra buffer requires overlap schedule|extra_buffer is not supported for"
        r"|extra_buffer_lazy unsupported under PD disaggregation"
        r"|--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer",
        since="0.5.8",
    ),
)

OTHERS = (
    Form(
        "decode batch",
        _pattern(r"mamba num: <slots:n>, mamba usage: <usage:g>(?=[^\d.])"),
        lambda found: said.Decode(_count(found, "slots"), _must(found, "usage")),
    ),
    Form("crash", _pattern(r"hit an exception|CUDA out of memory"), lambda found: said.Crashed()),
)

# Where two match at one place, the earlier counts.
FORMS: tuple[Form, ...] = (
    *WEIGHTS, *WARNINGS, *STATE, *RINGS, *KV, *MEMORY, *AFTER_CAPTURE, *SUMMARY, *REFUSALS, *OTHERS,
)  # fmt: skip

# Text that stands in every line of some form, for telling quickly whether a stretch of a log holds any. The search is
# fastest for long texts with rare letters at their end.
ANCHORS: tuple[str, ...] = (
    "server_args", "Load weight ", "s allocated", "avail mem=", "max_total_num_tokens", "max_running_requests",
    "max_total_tokens=", "max_num_reqs=", "Post-capture KV sizing", "KV Cache VA upper bound", "KV Cache skipped",
    "KV pool holds", "Using KV cache dtype", "ReplaySSM ring buffers", "mba/linear-attention)",
    "oaded weights leave no GPU", "Not enough memory. ", "no_buffer ", "extra buffer requires", "extra_buffer is not",
    "extra_buffer_lazy unsupported", "hit an exception", "CUDA out of memory",
)  # fmt: skip
DECODE_ANCHOR = "mamba usage: "  # in every batch while serving: looked for a few times only


class Match(NamedTuple):
    """One form found in a text."""

    form: Form
    start: int
    end: int
    said: Said


def matches(text: str) -> list[Match]:
    """Every form in a text, in order of appearance; no two share a character."""
    found: list[Match] = []
    for form in FORMS:
        for match in form.pattern.finditer(text):
            start, end = match.span()
            if all(end <= other.start or other.end <= start for other in found):
                found.append(Match(form, start, end, form.read(match.groupdict())))
    return sorted(found, key=lambda match: match.start)


def form_names() -> Iterator[str]:
    """The names of all forms."""
    return (form.name for form in FORMS)
