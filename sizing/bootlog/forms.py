"""The line forms, each a name, the text it reads, what it gives and the releases that print it.

Source: boot-log-formats.md; the engine's refusals are those of engine-sizing.md sections 4 and 8.
A number counts only where what the engine prints behind it is there: one at a cut may have lost digits. A line's end
counts (as the newline in the text) only behind the last key that some release prints, and only where text.py trusts it.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sizing.basics.problems import RefusalKind
from sizing.bootlog import line_records as records
from sizing.bootlog.line_records import LineRecord
from sizing.bootlog.measure import Printed, printed
from sizing.releases.rules import LATEST, RELEASES, Release

FIRST = RELEASES[0]
Fields = dict[str, str | None]
CUT = "…"  # text.py puts it where a line's end may be a cut; no form reads over it

# Bounds for hostile input; a real count has up to 8 digits, a real size 4 and its decimals.
WHOLE, SIZE = r"\d{1,15}", r"\d{1,9}(?:\.\d{1,6})?"


class Form(NamedTuple):
    """One form of one line."""

    name: str
    pattern: re.Pattern[str]
    read: Callable[[Fields], LineRecord]
    since: Release = FIRST
    until: Release = LATEST
    cut: bool = False
    """A line that lost its end; it says nothing of the release."""
    older: bool = False
    """A whole line of a release before all that were read: its end is not lost."""

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


def _weights_end(found: Fields) -> LineRecord:
    return records.WeightsEnd(found.get("model"), _size(found, "avail"))


WEIGHTS = (
    Form(
        "weights begin",
        _pattern(r"Load weight begin\. avail mem=<avail:g>_GB"),
        lambda found: records.WeightsBegin(_must(found, "avail")),
    ),
    Form(
        "weights begin, cut",
        _pattern(r"Load weight begin\b"),
        lambda found: records.WeightsBegin(None),
        cut=True,
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
        _pattern(r"Load weight end\b(?:[^\[]{0,200}?type=<model:w>(?=,))?(?:[^\[]{0,200}?avail mem=<avail:g>_GB)?"),
        _weights_end,
        cut=True,
    ),
)

# 3 Warnings from sizing.
WARNINGS = (
    Form(
        "clamp warning",
        _pattern(
            r"max_running_requests is capped to <requests:n> by the mamba state cache "
            r"\(max_mamba_cache_size=<slots:n>, <S:n> state slots per request\)"
        ),
        lambda found: records.Capped(_count(found, "requests"), _count(found, "slots"), _count(found, "S")),
        since="0.5.17",
    ),
    Form(
        "clamp warning, cut",
        _pattern(
            r"max_running_requests is capped to <requests:n> by(?: the mamba state cache "
            r"\(max_mamba_cache_size=<slots:n>,(?: <S:n> state)?)?"
        ),
        lambda found: records.Capped(_count(found, "requests"), _whole(found, "slots"), _whole(found, "S")),
        since="0.5.17",
        cut=True,
    ),
    Form(
        "reduced by KV",
        _pattern(
            r"max_running_requests was reduced from the requested <asked:n> to <requests:n> \(per dp worker\) "
            r"due to the available KV cache capacity"
        ),
        lambda found: records.Reduced(_count(found, "asked"), _count(found, "requests")),
        since="0.5.14",
    ),
    Form(
        "max_total_tokens lowered",
        _pattern(r"max_total_tokens=<asked:n> is larger than the profiled value <profiled:n>\."),
        lambda found: records.TokensLowered(_count(found, "asked"), _count(found, "profiled")),
    ),
    Form(
        "finalized requests",
        _pattern(
            r"Max concurrent requests \(per dp worker\) from the finalized token capacity: max_num_reqs=<requests:n>\."
        ),
        lambda found: records.Finalized(_count(found, "requests")),
        since="0.5.13",
        until="0.5.13",
    ),
    Form(
        "slots raised on a decode server",
        _pattern(
            r"mamba_size \(<charged:n>\) is less than decode side's max_slots_needed \(<allocated:n> = "
            rf"{WHOLE} reqs \* {WHOLE} slots/req\)"
        ),
        lambda found: records.Raised(_count(found, "charged"), _count(found, "allocated")),
        since="0.5.11",
    ),
    # The model's line is that of server_args.py up to 0.5.13 (support-by-release.md).
    Form(
        "radix cache off for a model",
        _pattern(r"(?P<words>Disabling Radix Cache for [\w.]{1,80} as it is not yet supported)"),
        lambda found: records.RadixOff(found["words"] or ""),
        until="0.5.13",
    ),
    Form(
        "radix cache off for decode",
        _pattern(r"(?P<words>Radix cache is disabled for decode server)"),
        lambda found: records.RadixOff(found["words"] or ""),
        since="0.5.22",
    ),
    Form(
        "chunk cache for decode",
        _pattern(r"(?P<words>KV cache is forced as chunk cache for decode server)"),
        lambda found: records.RadixOff(found["words"] or ""),
        until="0.5.21",
    ),
)


# 4 State pool. No space before GB, no comma before intermediate_; both are allowed, for lines typed by hand.
def _state(found: Fields) -> LineRecord:
    conv, ssm, draft_ssm, draft_conv = (_size(found, name) for name in ("conv", "ssm", "draft_ssm", "draft_conv"))
    pool = records.StatePool(
        _whole(found, "slots"), conv, ssm, draft_ssm, draft_conv, slots_at_end=_whole(found, "at_end")
    )
    if pool.draft_ssm is not None:
        return pool._replace(drafts="printed")
    return pool if found.get("end") is None else pool._replace(drafts="none")


# The end of the line: a newline, perhaps as JSON writes it, or the closing quotation mark.
_LINE_END = r"(?P<end> ?(?=\n|\\n|\"))"
_STATE_SIZES = (
    r"conv_state size: <conv:g>_GB, ssm_state size: <ssm:g>_GB"
    r"(?:,? intermediate_ssm_state_cache size: <draft_ssm:g>_GB"
    rf"(?:,? intermediate_conv_window_cache size: <draft_conv:g>_GB)?|{_LINE_END})?"
)
STATE = (
    Form(
        "state pool", _pattern(rf"Mamba Cache is allocated\. max_mamba_cache_size: <slots:n>, {_STATE_SIZES}"), _state
    ),
    Form(
        "state pool without a count",
        _pattern(rf"Mamba Cache is allocated\. {_STATE_SIZES}"),
        _state,
        cut=True,
        older=True,
    ),
    Form(
        "state pool, cut",
        _pattern(r"Mamba Cache is allocated\. max_mamba_cache_size: <slots:n>,"),
        _state,
        cut=True,
    ),
    Form(
        "state pool, its count at the line's end",
        _pattern(r"Mamba Cache is allocated\. max_mamba_cache_size: <at_end:n> ?(?=\n)"),
        _state,
        cut=True,
    ),
    Form(
        "unified pool",
        _pattern(
            r"\[unified-memory-pool\][^\n]{0,400}?total_bytes=<bytes:n>, max_total_num_tokens=<tokens:n>, "
            r"max_mamba_cache_size=<slots:n>, max_num_reqs=<requests:n>(?=,)"
        ),
        lambda found: records.Unified(*(_count(found, name) for name in ("bytes", "tokens", "slots", "requests"))),
        since="0.5.15",
    ),
)


# 4 ReplaySSM rings, with three decimals. The engine writes GDN for KDA as well.
def _ring(found: Fields, fold: bool | None) -> LineRecord:
    names = ("d", "k", "g", "rawv", "rawk", "beta")
    sizes = tuple(size for size in (_size(found, name) for name in names) if size is not None)
    return records.Ring(_whole(found, "length"), fold, sizes)


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
        _pattern(rf"{_RING}\(L=<length:n>\): {_RINGS}{_LINE_END}"),
        partial(_ring, fold=None),
        since="0.5.15",
        until="0.5.16",
    ),
    Form(
        "ring of KDA",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=True\): {_RINGS}{_RAW}{_BETA}"),
        partial(_ring, fold=True),
        since="0.5.17",
    ),
    Form(
        "ring of GDN",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=False\): {_RINGS}{_RAW},?{_LINE_END}"),
        partial(_ring, fold=False),
        since="0.5.20",
    ),
    Form(
        "ring of GDN with beta",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=False\): {_RINGS}{_RAW}{_BETA}"),
        partial(_ring, fold=False),
        since="0.5.17",
        until="0.5.19",
    ),
    Form(
        "ring for decode",
        _pattern(rf"{_RING}\(record_len=<length:n>, fold=False\): {_RINGS}{_LINE_END}"),
        partial(_ring, fold=False),
        since="0.5.17",
    ),
    Form(
        "ring, cut",
        _pattern(rf"{_RING}(?:\((?:L|record_len)=<length:n>[,)])?"),
        partial(_ring, fold=None),
        cut=True,
    ),
)


# 5 KV pool. MLA prints one size, MHA and GQA two; the dtype since 0.5.13; a space before GB.
def _kv(found: Fields, reserved: bool = False) -> LineRecord:
    sizes = tuple(size for size in (_size(found, name) for name in ("kv", "k", "v")) if size is not None)
    return records.KvPool(_whole(found, "rows"), sizes, found.get("dtype"), reserved)


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
    Form("KV pool without a number", _pattern(r"KV Cache is allocated\b"), _kv, cut=True),
    Form("no KV pool", _pattern(r"KV Cache skipped \(no-op pool\)"), lambda found: records.NoKvPool(), since="0.5.12"),
    # Not in boot-log-formats.md: seen in a field report of 0.5.9, before the KV line itself named the dtype.
    Form("KV dtype", _pattern(r"Using KV cache dtype: <dtype:w>"), lambda found: records.KvDtype(found["dtype"] or "")),
)


# 6 What is left, and 8 graph capture.
def _capture(found: Fields) -> LineRecord:
    return records.Capture(_size(found, "avail"), found.get("ended") or "")


MEMORY = (
    Form(
        "pools end",
        _pattern(r"Memory pool end\. avail mem=<avail:g>_GB"),
        lambda found: records.PoolEnd(_must(found, "avail")),
    ),
    Form("pools end, cut", _pattern(r"Memory pool end\b"), lambda found: records.PoolEnd(None), cut=True),
    Form(
        "capture",
        _pattern(
            r"Capture [\w ]{1,60} CUDA graph (?:begin|(?P<ended>end))\."
            r"(?:(?!Capture )[^\n]){0,200}?avail mem=<avail:g>_GB"
        ),
        _capture,
        since="0.5.14",
    ),
    Form(
        "capture up to 0.5.13",
        _pattern(r"Capture cuda graph (?:begin|(?P<ended>end))\.(?:(?!Capture )[^\n]){0,200}?avail mem=<avail:g>_GB"),
        _capture,
        until="0.5.13",
    ),
    Form(
        "capture, cut",
        _pattern(r"Capture (?:cuda graph|[\w ]{1,60} CUDA graph) (?:begin|(?P<ended>end))\b"),
        _capture,
        cut=True,
    ),
)

# 7 Post-capture sizing.
AFTER_CAPTURE = (
    Form(
        "post-capture pool",
        _pattern(
            r"Post-capture KV sizing: KV cache allocated\. dtype: <dtype:w>, #tokens: <rows:n>, KV size: <kv:g>_GB"
        ),
        lambda found: records.AfterCapture(_whole(found, "rows"), _size(found, "kv"), found.get("dtype")),
        since="0.5.16",
    ),
    Form(
        "post-capture tokens",
        _pattern(r"Post-capture KV sizing: full_layer_tokens=<rows:n>, swa_layer_tokens="),
        lambda found: records.AfterCapture(rows=_whole(found, "rows")),
        since="0.5.16",
    ),
    Form(
        "post-capture tokens of 0.5.16",
        _pattern(r"Post-capture KV sizing: max_total_num_tokens=<rows:n>, free memory="),
        lambda found: records.AfterCapture(rows=_whole(found, "rows")),
        since="0.5.16",
        until="0.5.16",
    ),
    Form(
        "post-capture requests",
        _pattern(rf"Post-capture KV sizing: max_running_requests {WHOLE} -> <requests:n>{_LINE_END}"),
        lambda found: records.AfterCapture(requests=_whole(found, "requests")),
        since="0.5.16",
    ),
)


# 9 Summary: the keys after the first may be cut off.
def _summary(found: Fields) -> LineRecord:
    pairs = dict(re.findall(rf", (\w+)=(-?{SIZE} GB|-?{SIZE}(?=,))", found.get("pairs") or ""))
    whole = {key: int(text) for key, text in pairs.items() if text.isdecimal() and len(text) <= 15}
    memory = next((text for key, text in pairs.items() if key.startswith("available_") and text.endswith(" GB")), None)
    return records.Summary(
        _whole(found, "tokens"),
        whole.get("max_running_requests"),
        whole.get("context_len"),
        whole.get("chunked_prefill_size"),
        printed(memory.removesuffix(" GB")) if memory else None,
    )


SUMMARY = (
    Form(
        "context is longer than the pool",
        _pattern(r"KV pool holds <tokens:n> tokens, fewer than --context-length <context:n>(?=\.)"),
        lambda found: records.ContextShort(_count(found, "tokens"), _count(found, "context")),
        since="0.5.23",
    ),
    Form(
        "summary",
        _pattern(
            r"max_total_num_tokens=<tokens:n>(?=,)"
            rf"(?P<pairs>(?:, \w{{1,40}}=-?{SIZE}(?: GB)?)*,?)"
        ),
        _summary,
    ),
    # Behind one of the engine's own keys alone, or the text is a flag or a field of something else.
    Form(
        "summary, cut",
        _pattern(r"(?:^|(?<=\] ))max_total_num_tokens=\d{1,15}(?=\D|$)"),
        lambda found: records.Summary(None),
        cut=True,
    ),
)


# Refusals; they arrive inside a traceback. `MB` is MiB (engine-sizing.md section 8).
def _refused(found: Fields, kind: RefusalKind) -> LineRecord:
    return records.Refused(kind, {name: printed(text) for name, text in found.items() if text is not None})


def _refusal(kind: RefusalKind, text: str, since: Release = FIRST, by: str = "") -> Form:
    return Form(f"refusal: {kind}{by}", _pattern(text), partial(_refused, kind=kind), since=since)


# What server_args.py and arg_groups/ raise, in the words that the releases share (engine-sizing.md section 10); those
# that others might print count behind an exception's name alone. argparse speaks for the launcher.
_TO_THE_END = r'(?:(?!\\n)[^\n"…]){0,300}'
_ERROR = r"\w{1,40}Error: "
_FLAGS: tuple[tuple[str, str, str, Release], ...] = (
    (
        "",
        rf"(?:{_ERROR})?",
        "no_buffer only supports page_size=1|no_buffer do not support |Lazy extra buffer requires overlap schedule"
        "|extra_buffer is not supported for|extra_buffer_lazy unsupported "
        "|--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer",
        "0.5.8",
    ),
    (
        ", by an exception",
        _ERROR,
        r"Speculative decoding for [\w.]{1,80} is not compatible with radix cache"
        r"|extra_buffer_lazy is not yet supported"
        r"|[Mm]amba extra_buffer is (?:not compatible|only supported)|mamba_track_interval \d{1,9} must "
        r"|chunked_prefill_size must be divisible by page_size|Page size must be \d{1,9} for MambaRadixCache"
        r"|Decode context parallel \(--dcp-size|Pipeline parallelism is not compatible with|PP \+ speculative decoding"
        r"|KV4 MHA expects attention_backend|'ServerArgs' object has no attribute 'mamba_"
        r"|[\w.-]{1,40} does not support PD disaggregation"
        r"|--(?:enable-(?:linear|unified|page-major|int8-mamba)|disaggregation|mamba|max-mamba|dcp|linear)-?[\w-]* "
        r"(?:is|and|only|requires?|supports?|needs|with|currently|must|cannot)\b",
        FIRST,
    ),
    (", by a line of code", "", r"assert (?:self|view)\.mamba_track_interval ", FIRST),
    (
        ", by argparse",
        r"(?:launch_server(?:\.py)?|sglang(?: serve)?): error: ",
        r"unrecognized arguments: -|argument -[^\n:]{1,80}: (?:invalid|expected) ",
        FIRST,
    ),
)

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
        r"(?=\. )(?:[^\n]{0,120}?minimum viable = 1 - available/pre = <mem_fraction_least:g>\))?)?",
        since="0.5.14",
    ),
    _refusal("no_tokens", r"Not enough memory\. Please try to increase --mem-fraction-static"),
    _refusal(
        "no_requests",
        r"Hybrid \(mamba/linear-attention\) state cache is too small to serve any requests\."
        rf"(?: max_mamba_cache_size=(?P<max_mamba_cache_size>-?{WHOLE}), mamba_ratio=<mamba_ratio:n>(?=,))?",
        since="0.5.13",
    ),
    *(_refusal("flags", rf"{error}(?:{words}){_TO_THE_END}", since, by) for by, error, words, since in _FLAGS),
)

OTHERS = (
    Form(
        "decode batch",
        _pattern(r"mamba num: <slots:n>, mamba usage: <usage:g>(?=,)"),
        lambda found: records.Decode(_count(found, "slots"), _must(found, "usage")),
    ),
    # A child that dies sends SIGQUIT; a state slot that is not there is an assertion (running-server.md 6.5).
    Form(
        "crash",
        _pattern(r"hit an exception|(?:CUDA|HIP|NPU|XPU) out of memory|Received sigquit from a child process"),
        lambda found: records.Crashed(),
    ),
    Form(
        "crash: no state slot",
        _pattern(r"Not enough space for mamba (?:cache|ping pong)|Can not alloc mamba cache"),
        lambda found: records.NoSlot(),
    ),
)

# Where two match at one place, the earlier counts.
FORMS: tuple[Form, ...] = (
    *WEIGHTS, *WARNINGS, *STATE, *RINGS, *KV, *MEMORY, *AFTER_CAPTURE, *SUMMARY, *REFUSALS, *OTHERS,
)  # fmt: skip

# How a message of the boot begins: what begins so is not the rest of a line before it.
BEGINNINGS: tuple[str, ...] = (
    "server_args", "Load weight ", "Mamba Cache", "KV Cache", "Disabling Radix Cache", "Memory pool end", "Capture ",
)  # fmt: skip

# Text that stands in every line of some form, for telling quickly whether a stretch of a log holds any. The search is
# fastest for long texts with rare letters at their end.
ALWAYS: tuple[str, ...] = (
    "server_args", "Load weight ", "max_total_num_tokens", "max_running_requests", "max_num_reqs=",
    "Post-capture KV sizing", "Using KV cache dtype", "ReplaySSM ring buffers", "mba/linear-attention)",
    "oaded weights leave no GPU", "Not enough memory. ", "no_buffer ", "extra buffer requires", "extra_buffer",
    "Disabling Radix Cache for", "decode side's max_slots", " decode server", "hit an exception",
    "mamba_track_interval ",
    "compatible with radix cache", "divisible by page_size", "for MambaRadixCache", "(--dcp-size", "PP + speculative",
    "Pipeline parallelism is", "KV4 MHA expects", "no attribute 'mamba_", "not support PD", "Error: --",
    "error: unrecognized", "error: argument", "space for mamba ", "alloc mamba cache",
)  # fmt: skip
ANCHORS: tuple[str, ...] = (
    *ALWAYS, "Mamba Cache", "KV Cache", "KV pool holds", "max_total_tokens=", "Memory pool end", "Capture ",
    "out of memory", "sigquit", "mamba cache",
)  # fmt: skip
# Of a log of many megabytes: without lines that repeat what others say, and those that have lost their end.
LONG_ANCHORS: tuple[str, ...] = (*ALWAYS, "s allocated", "KV Cache VA upper bound", "avail mem=", "CUDA out of memory")
DECODE_ANCHOR = "mamba usage: "  # in every batch while serving: looked for a few times only


class Match(NamedTuple):
    """One form found in a text."""

    form: Form
    start: int
    end: int
    record: LineRecord


def matches(text: str) -> list[Match]:
    """Every form in a text, in order of appearance; no two share a character."""
    found: list[Match] = []
    for form in FORMS:
        for match in form.pattern.finditer(text):
            start, end = match.span()
            if all(end <= other.start or other.end <= start for other in found):
                found.append(Match(form, start, end, form.read(match.groupdict())))
    return sorted(found, key=lambda match: match.start)
