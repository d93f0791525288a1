"""Boot-log lines one by one, logs as collectors and terminals leave them, and logs that something has damaged."""

import gzip
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sizing import Scenario, read_scenario
from sizing.bootlog import Log, exact_bytes, inputs_of, read_chunks, read_file, read_text
from sizing.bootlog.arguments import read_arguments
from sizing.bootlog.forms import ANCHORS, DECODE_ANCHOR, FORMS, LONG_ANCHORS, matches
from sizing.bootlog.gather import facts_of
from sizing.bootlog.line_records import Refused
from sizing.bootlog.measure import Printed
from sizing.engine.resolve import slots_per_request
from sizing.models import entry, read_config

GOLDEN = Path(__file__).parent / "golden"
BOOT = (GOLDEN / "boot_logs" / "0.5.21_kda_mla_tp8.log").read_text(encoding="utf-8")
SPECULATIVE = (GOLDEN / "boot_logs" / "0.5.23_kda_mla_tp8_eagle4_replayssm.log").read_text(encoding="utf-8")
STATE = "Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ssm_state size: 13.04GB "
MLA = "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1167552, KV size: 15.03 GB"
REFUSED = (
    "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
    "max_mamba_cache_size=-28 (total_rest_memory=-7.96 GB, mamba_cache_per_req=146.81 MB). Try: (1) reduce ..."
)
CAPPED = (
    "max_running_requests is capped to 51 by the mamba state cache (max_mamba_cache_size=257, 5 state slots per "
    "request). To raise it: increase --mamba-full-memory-ratio or --max-mamba-cache-size."
)
TP0 = "[2026-01-15 10:00:05 TP0] "

# Each form with a line of boot-log-formats.md, and the numbers in it that count.
SAMPLES: dict[str, tuple[str, list[float]]] = {
    "weights begin": ("Load weight begin. avail mem=178.00 GB", [178]),
    "weights begin, cut": ("Load weight begin. avail mem=178.00", []),
    "weights end": (
        "Load weight end. elapsed=93.21 s, type=M, quant=fp8, fmt=e4m3, avail mem=55.23 GB, mem usage=122.77 GB.",
        [55.23],
    ),
    "weights end with a dtype": (
        "Load weight end. elapsed=1.25 s, type=M, dtype=torch.bfloat16, avail mem=9.26 GB, mem usage=5.98 GB.",
        [9.26],
    ),
    "weights end without a time": (
        "Load weight end. type=M, dtype=torch.bfloat16, avail mem=60.70 GB, mem usage=77.30 GB.",
        [60.7],
    ),
    "weights end, cut": ("Load weight end. type=M, quant=fp8", []),
    "clamp warning": (CAPPED, [51, 257, 5]),
    "clamp warning, cut": (CAPPED[: CAPPED.index("state slots")], [51, 257]),
    "slots raised on a decode server": (
        "mamba_size (24) is less than decode side's max_slots_needed (72 = 72 reqs * 1 slots/req), raising "
        "effective_mamba_size to 72",
        [24, 72],
    ),
    "radix cache off for a model": ("Disabling Radix Cache for KimiLinearForCausalLM as it is not yet supported.", []),
    "radix cache off for decode": ("Radix cache is disabled for decode server", []),
    "chunk cache for decode": ("KV cache is forced as chunk cache for decode server", []),
    "reduced by KV": (
        "max_running_requests was reduced from the requested 500 to 90 (per dp worker) due to the available KV cache "
        "capacity.",
        [500, 90],
    ),
    "max_total_tokens lowered": (
        "max_total_tokens=900 is larger than the profiled value 800. Use the profiled value instead.",
        [900, 800],
    ),
    "finalized requests": (
        "Max concurrent requests (per dp worker) from the finalized token capacity: max_num_reqs=421.",
        [421],
    ),
    "state pool": (
        "Mamba Cache is allocated. max_mamba_cache_size: 728, conv_state size: 0.30GB, ssm_state size: 12.81GB "
        "intermediate_ssm_state_cache size: 9.07GB intermediate_conv_window_cache size: 0.11GB ",
        [728, 0.30, 12.81, 9.07, 0.11],
    ),
    "state pool without a count": (
        "Mamba Cache is allocated. conv_state size: 0.03GB, ssm_state size: 1.20GB",
        [0.03, 1.2],
    ),
    "state pool, cut": ("Mamba Cache is allocated. max_mamba_cache_size: 320, conv_sta", [320]),
    "state pool, its count at the line's end": ("Mamba Cache is allocated. max_mamba_cache_size: 320", [320]),
    "unified pool": (
        "[unified-memory-pool]   total_bytes=1000, max_total_num_tokens=800, max_mamba_cache_size=70, "
        "max_num_reqs=14, speculative_num_draft_tokens=None",
        [1000, 800, 70, 14],
    ),
    "ring": (
        "GDN ReplaySSM ring buffers allocated (L=16): d=1.049GB, k=1.049GB, g=0.016GB ",
        [16, 1.049, 1.049, 0.016],
    ),
    "ring of drafts": (
        "GDN ReplaySSM ring buffers allocated (L=16): d=1.049GB, k=1.049GB, g=0.016GB rawv=1.049GB, rawk=1.049GB, "
        "beta=0.016GB ",
        [16, 1.049, 1.049, 0.016, 1.049, 1.049, 0.016],
    ),
    "ring of KDA": (
        "GDN ReplaySSM ring buffers allocated (record_len=16, fold=True): d=1.049GB, k=1.049GB, g=2.097GB "
        "rawv=1.049GB, rawk=1.049GB, beta=0.016GB ",
        [16, 1, 1.049, 1.049, 2.097, 1.049, 1.049, 0.016],
    ),
    "ring of GDN": (
        "GDN ReplaySSM ring buffers allocated (record_len=16, fold=False): d=0.071GB, k=0.071GB, g=0.002GB "
        "rawv=0.071GB, rawk=0.071GB, ",
        [16, 0, 0.071, 0.071, 0.002, 0.071, 0.071],
    ),
    "ring of GDN with beta": (
        "GDN ReplaySSM ring buffers allocated (record_len=4, fold=False): d=0.071GB, k=0.071GB, g=0.002GB "
        "rawv=0.071GB, rawk=0.071GB, beta=0.001GB ",
        [4, 0, 0.071, 0.071, 0.002, 0.071, 0.071, 0.001],
    ),
    "ring, cut": ("GDN ReplaySSM ring buffers allocated (record_len=16, fold=True): d=1.049GB, k=1.0", [16]),
    "ring for decode": (
        "GDN ReplaySSM ring buffers allocated (record_len=16, fold=False): d=0.071GB, k=0.071GB, g=0.002GB ",
        [16, 0, 0.071, 0.071, 0.002],
    ),
    "KV pool of MLA": (MLA, [1167552, 15.03]),
    "KV pool of GQA": (
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 2226368, K size: 12.74 GB, V size: 12.74 GB",
        [2226368, 12.74, 12.74],
    ),
    "KV pool of MLA without a dtype": ("KV Cache is allocated. #tokens: 1167552, KV size: 15.03 GB", [1167552, 15.03]),
    "KV pool of GQA without a dtype": (
        "KV Cache is allocated. #tokens: 1839936, K size: 10.53 GB, V size: 10.54 GB",
        [1839936, 10.53, 10.54],
    ),
    "KV pool, reserved": (
        "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 1839936, K size: 10.53 GB, V size: 10.53 GB",
        [1839936, 10.53, 10.53, 1],
    ),
    "KV pool, cut": ("KV Cache is allocated. #tokens: 1839936, K si", [1839936]),
    "KV pool without a number": ("KV Cache is allocated. dtype: torch.bfloat16, #tokens: 18399", []),
    "no KV pool": ("KV Cache skipped (no-op pool). ", []),
    "KV dtype": ("Using KV cache dtype: torch.bfloat16", []),
    "pools end": ("Memory pool end. avail mem=26.70 GB", [26.7]),
    "pools end, cut": ("Memory pool end. avail mem=26.7", []),
    "capture, cut": ("Capture target decode CUDA graph begin. backend=full, num_tokens=8, avail mem=23.1", []),
    "capture": (
        "Capture target decode CUDA graph begin. backend=full, num_tokens=8, avail mem=23.10 GB",
        [23.1],
    ),
    "capture up to 0.5.13": (
        "Capture cuda graph begin. This can take up to several minutes. avail mem=23.10 GB",
        [23.1],
    ),
    "post-capture pool": (
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 1802240, KV size: 20.63 GB, "
        "avail mem=18.31 GB",
        [1802240, 20.63],
    ),
    "post-capture tokens": ("Post-capture KV sizing: full_layer_tokens=1802240, swa_layer_tokens=0", [1802240]),
    "post-capture tokens of 0.5.16": (
        "Post-capture KV sizing: max_total_num_tokens=1802240, free memory=18.31 GB",
        [1802240],
    ),
    "post-capture requests": ("Post-capture KV sizing: max_running_requests 421 -> 400", [400]),
    "context is longer than the pool": (
        "KV pool holds 4096 tokens, fewer than --context-length 262144. Requests ...",
        [4096, 262144],
    ),
    "summary": (
        "max_total_num_tokens=1167552, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=51, "
        "context_len=262144, available_gpu_mem=23.30 GB",
        [1167552, 51, 262144, 8192, 23.3],
    ),
    "summary, cut": ("max_total_num_tokens=1167552", []),
    "refusal: no_state_memory": (REFUSED, [-28, -7.96, 146.81]),
    "refusal: no_kv_memory": (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.85. Raise "
        "--mem-fraction-static above 0.912 (minimum viable = 1 - available/pre = 0.9114). If using speculative ...",
        [0.85, 0.9114],
    ),
    "refusal: no_tokens": ("Not enough memory. Please try to increase --mem-fraction-static. ", []),
    "refusal: no_requests": (
        "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. max_mamba_cache_size=3, "
        "mamba_ratio=5, resulting max_num_reqs=0.",
        [3, 5],
    ),
    "refusal: flags": ("AssertionError: no_buffer only supports page_size=1.", []),
    "refusal: flags, by an exception": ("ValueError: extra_buffer_lazy is not yet supported with speculation.", []),
    "refusal: flags, by a line of code": ("assert view.mamba_track_interval % view.page_size == 0", []),
    "refusal: flags, by argparse": ("launch_server.py: error: unrecognized arguments: --dcp-size 8", []),
    "decode batch": ("Decode batch, #running-req: 8, mamba num: 8, mamba usage: 0.50, accept len: 3.09", [8, 0.5]),
    "crash": ("Scheduler hit an exception: Traceback (most recent call last):", []),
    "crash: no state slot": ("AssertionError: Can not alloc mamba cache", []),
}


def numbers_of(said: Any) -> Iterator[float]:
    """Every number in what a line said; true and false count as 1 and 0 where they were printed."""
    if isinstance(said, Printed):
        yield said.value
    elif isinstance(said, bool):
        yield from [1.0] if said else []
    elif isinstance(said, int | float):
        yield said
    elif isinstance(said, dict):
        for value in said.values():
            yield from numbers_of(value)
    elif isinstance(said, tuple):
        for value in said:
            yield from numbers_of(value)


@pytest.mark.parametrize("name", SAMPLES)
def test_line_form(name: str) -> None:
    """A sample is read by its own form alone, with all its numbers, and the fast search stops at it."""
    line, expected = SAMPLES[name]
    found = matches(line + "\n")
    assert [match.form.name for match in found] == [name]
    wanted = expected if "fold" not in line else [number for number in expected if number != 0]
    assert list(numbers_of(found[0].record)) == wanted
    assert any(anchor in line for anchor in (*ANCHORS, DECODE_ANCHOR))
    log = read_text(f"{TP0}{line}\n{'-' * 400}\n")
    lines = [line for boot in log.boots for line in boot.lines]
    assert [line.form for line in lines] == ([name] if name != "crash" else [])
    assert all(line.rank.name == "TP0" for line in lines)


# Not looked for in a log of many megabytes: the sizes of the pools stand in lines beside them.
IN_SHORT_LOGS = {"max_total_tokens lowered", "no KV pool", "context is longer than the pool"}


def test_long_logs_are_searched_for_every_form() -> None:
    """A form that the search of a log of many megabytes would pass by is passed by on purpose."""
    missed = {
        name for name, (line, _) in SAMPLES.items() if not any(text in line for text in (*LONG_ANCHORS, DECODE_ANCHOR))
    }
    assert missed == IN_SHORT_LOGS


def test_every_form_has_a_sample() -> None:
    """And no two forms share a name."""
    assert {form.name for form in FORMS} == SAMPLES.keys()
    assert len(FORMS) == len(SAMPLES)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("crash", "no KV pool", "KV dtype")])
def test_cut_line_yields_no_other_number(name: str) -> None:
    """Wherever a line breaks off, with or without a line end behind, only numbers that stand there whole are read."""
    line, _ = SAMPLES[name]
    for length in range(len(line)):
        for end in ("", "\n"):
            text = line[:length] + end
            found = [number for match in matches(text) for number in numbers_of(match.record)]
            whole = {float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)} | {1.0}
            assert set(found) <= whole, (text, found)
        if line[length - 1 : length].isdigit():
            broken = re.split(r"[^\d.-]", line[:length])[-1]
            read = [number for match in matches(line[:length]) for number in numbers_of(match.record)]
            earlier = re.findall(r"-?\d+(?:\.\d+)?", line[: length - len(broken)])
            assert float(broken) not in read or broken in earlier or "fold" in line


def test_the_specifications_lines() -> None:
    """Its two lines give 56.18 MB and 13.8 KB with their intervals, and the engine's integers for Kimi-K3 at TP8."""
    log = read_text(f"{STATE}\n{MLA}\n")
    assert log.last
    facts = log.last.facts
    assert facts.slot_bytes
    assert facts.token_bytes
    assert [round(end / 1e6, 2) for end in facts.slot_bytes] == [56.18, 56.14, 56.23]
    assert [round(end) for end in facts.token_bytes] == [13822, 13818, 13827]
    exact = exact_bytes(facts, read_config(entry("moonshotai/Kimi-K3").config), tp_size=8)
    assert (exact.state, exact.conv, exact.kv, exact.sentences) == (56_171_520, 1_907_712, 13_824, ())
    other = exact_bytes(facts, read_config(entry("moonshotai/Kimi-K3").config), tp_size=4)
    assert (other.state, other.kv) == (None, 13_824)
    assert other.sentences == (
        "State bytes per slot: the log allows 56,142,547 to 56,225,783, the model gives 112,343,040 at float32, "
        "58,079,232 at bfloat16, 58,079,232 at float16. Check the model and tp_size; the printed size stays.",
    )


def facts_text(log: Log) -> list[tuple[Any, ...]]:
    """What was found of each boot, without places."""
    return [
        (boot.facts.model_dump(), boot.refused, boot.crashed, [line.record for line in boot.lines])
        for boot in log.boots
    ]


COLLECTORS: dict[str, Callable[[str], str]] = {
    "as it is": lambda line: line,
    "compose": lambda line: f"sglang-1  | {line}",
    "kubectl": lambda line: f"[pod/engine-0/sglang] {line}",
    "kubectl with times": lambda line: f"2026-01-15T10:00:05.123456789Z {line}",
    "journal": lambda line: f"Jan 15 10:00:05 node7 sglang[4242]: {line}",
    "Ray": lambda line: f"(EngineActor pid=4242, ip=10.0.0.7) {line}",
    "colours": lambda line: re.sub(r"^\[([^\]]*)\]", "\x1b[32m[\\1]\x1b[0m", line),
    "JSON": lambda line: '{"log":"' + line.replace('"', '\\"') + '\\n","stream":"stderr"}',
    "progress bar": lambda line: f"Loading shards:  50%|##   | 1/2 [00:01<00:01]\rLoading shards: 100%|####|\r{line}",
    "Windows line ends": lambda line: f"{line}\r",
}


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("text", [BOOT, SPECULATIVE], ids=["plain", "speculative"])
def test_collector_changes_nothing(collector: str, text: str) -> None:
    """Prefixes, colours, JSON, progress bars and line ends of collectors leave the facts as they are."""
    collected = "\n".join(COLLECTORS[collector](line) for line in text.splitlines()) + "\n"
    assert facts_text(read_text(collected)) == facts_text(read_text(text))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_wrapped_by_a_terminal(width: int) -> None:
    """A terminal breaks lines at its width, within words and numbers; the facts stay."""
    lines = [line[at : at + width] for line in SPECULATIVE.splitlines() for at in range(0, len(line), width)]
    assert facts_text(read_text("\n".join(lines))) == facts_text(read_text(SPECULATIVE))


def test_a_line_twice_is_one_line() -> None:
    """A log collected twice, line by line, is one boot with one draft."""
    first, *others = SPECULATIVE.splitlines()
    doubled = "\n".join([first, *[line for line in others for _ in range(2)]])
    once, twice = read_text(SPECULATIVE), read_text(doubled)
    assert facts_text(twice) == facts_text(once)


def test_chunks_of_any_size_and_gzip(tmp_path: Path) -> None:
    """Chunks of one byte, gzip in two members, UTF-16 of a Windows shell and a file give the same boots."""
    expected = facts_text(read_text(SPECULATIVE))
    raw = SPECULATIVE.encode()
    packed = gzip.compress(raw[:5000]) + gzip.compress(raw[5000:])
    for data in (raw, packed, b"\xff\xfe" + SPECULATIVE.encode("utf-16-le")):
        assert facts_text(read_chunks([data[at : at + 1] for at in range(len(data))])) == expected
    path = tmp_path / "server.log.gz"
    path.write_bytes(packed)
    told: list[int] = []
    assert facts_text(read_file(path, told.append)) == expected
    assert told[-1] == len(packed)
    broken = read_chunks([packed[:-200]])
    assert [problem.sentence for problem in broken.problems] == [
        "The packed file breaks off or is damaged: only what came before was read."
    ]


def test_ranks_restarts_and_replicas() -> None:
    """Eight interleaved ranks are one boot, a restart is another, and so is a replica with the same ranks."""
    first, *others = BOOT.splitlines()
    ranks = "\n".join([first, *[line.replace("TP0", f"TP{rank}") for line in others for rank in range(8)]])
    one = read_text(ranks)
    assert (len(one.boots), len(one.boots[0].facts.ranks), one.boots[0].facts.conflicts) == (1, 8, ())
    assert len(read_text(f"{ranks}\n{ranks.replace('10:00', '11:00')}").boots) == 2
    without_arguments = "\n".join(ranks.splitlines()[1:])
    assert len(read_text(f"{without_arguments}\n{without_arguments.replace('10:00', '11:00')}").boots) == 2
    replicas = "\n".join(f"{name}  | {line}" for line in BOOT.splitlines() for name in ("a-1", "a-2"))
    assert [boot.source for boot in read_text(replicas).boots] == ["a-1", "a-2"]
    nodes = "\n".join(
        f"{name}  | {line.replace('TP0', rank)}" for line in others for name, rank in (("n0", "TP0"), ("n1", "TP8"))
    )
    assert [boot.facts.ranks for boot in read_text(nodes).boots] == [("TP0", "TP8")]


def test_ranks_that_disagree_are_reported() -> None:
    """One sentence for what ranks should share and do not."""
    other = BOOT.replace("TP0", "TP1").replace("max_mamba_cache_size: 257", "max_mamba_cache_size: 256")
    log = read_text(BOOT + "\n".join(other.splitlines()[1:]) + "\n")
    assert log.last
    assert log.last.facts.conflicts == (
        "Ranks print different max_mamba_cache_size: 256 on TP1 and 257 on TP0. Check that the log is of one "
        "deployment.",
    )


def test_refused_boot_keeps_its_numbers() -> None:
    """A refusal without a rank inside a traceback ends a boot; a negative count is no number of slots."""
    log = read_text(f"{BOOT.splitlines()[1]}\nTraceback (most recent call last):\n{REFUSED}\n{BOOT}")
    assert [boot.failed for boot in log.boots] == [True, False]
    refused = log.boots[0].refused
    assert refused
    assert (refused.refusal.kind, refused.slots, refused.rest_gib, refused.slot_bytes) == (
        "no_state_memory", -28, -7.96, 153_941_443,
    )  # fmt: skip
    assert log.boots[0].facts.slots is None
    assert "No ratio helps" in refused.refusal.cure
    assert log.last == log.boots[1]


def test_draft_that_loads_after_the_pools_is_no_restart() -> None:
    """Before 0.5.14 a draft's weights and its KV line come behind the target's pools, with what those left."""
    lines = (GOLDEN / "boot_logs" / "0.5.8_gdn_gqa_tp8_eagle4.log").read_text(encoding="utf-8").splitlines()
    draft = [
        f"{TP0}Load weight begin. avail mem=20.65 GB",
        f"{TP0}Load weight end. type=D, dtype=torch.bfloat16, avail mem=19.65 GB, mem usage=1.00 GB.",
        f"{TP0}KV Cache is allocated. #tokens: 1628480, K size: 0.78 GB, V size: 0.78 GB",
    ]
    log = read_text("\n".join([*lines[:-1], *draft, lines[-1]]) + "\n")
    assert len(log.boots) == 1
    facts = log.boots[0].facts
    assert (facts.slots, facts.kv_rows, facts.releases) == (1863, 1_628_480, ("0.5.7", "0.5.8"))
    assert facts.end_gib
    assert facts.end_gib.value == 60.70
    assert facts.draft_token_bytes
    assert facts.draft_token_bytes.holds(1024)


def test_rank_behind_a_refusal_is_no_boot() -> None:
    """What another rank still prints after one was refused belongs to the boot that failed."""
    end = "Load weight end. elapsed=9.00 s, type=M, avail mem=5.00 GB, mem usage=9.00 GB."
    log = read_text(
        "".join(f"[2026-01-15 10:00:01 TP{rank}] Load weight begin. avail mem=14.00 GB\n" for rank in range(2))
        + f"[2026-01-15 10:00:02 TP0] {end}\n{REFUSED}\n[2026-01-15 10:00:02 TP1] {end}\n"
    )
    assert [(boot.failed, boot.facts.ranks) for boot in log.boots] == [(True, ("", "TP0", "TP1"))]


def test_lines_as_people_quote_them() -> None:
    """Several ranks in one tag, indented rests of lines, a label before KV Cache; host caches are not the pools."""
    log = read_text(
        "[TP0..3] Mamba Cache is allocated. max_mamba_cache_size: 8,\n         conv_state size: 0.01 GB, "
        "ssm_state size: 0.10 GB\n[TP0..3] Allocating 62.20 GB host memory for hierarchical KV cache.\n"
        "[TP0..3] DSA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1557504,\n         KV size: 2.23 GB\n"
    )
    facts = log.boots[0].facts
    assert (len(log.boots), facts.slots, facts.kv_rows, facts.attention) == (1, 8, 1_557_504, "MLA")
    assert facts.slot_bytes
    assert facts.slot_bytes.holds(0.11 * 2**30 / 9)


def test_post_capture_sizing_counts() -> None:
    """The reservation is not the pool: tokens, size and requests are those after capture."""
    log = read_text(
        f"{TP0}{STATE}\n{TP0}{SAMPLES['KV pool, reserved'][0]}\n{TP0}{SAMPLES['post-capture tokens'][0]}\n"
        f"{TP0}{SAMPLES['post-capture pool'][0]}\n{TP0}{SAMPLES['post-capture requests'][0]}\n"
        f"{TP0}Memory pool end. avail mem=18.31 GB\n"
    )
    assert log.last
    facts = log.last.facts
    assert (facts.kv_rows, facts.running, facts.releases[0]) == (1_802_240, 400, "0.5.18")
    assert facts.rest_from_pools
    assert facts.rest_from_pools.value == pytest.approx(0.46 + 13.04 + 20.63)


def test_unified_memory_is_asked_back() -> None:
    """One pool for both has no bytes of a slot: one sentence says so."""
    log = read_text(TP0 + SAMPLES["unified pool"][0] + "\n")
    assert log.last
    assert (log.last.facts.slots, log.last.facts.slot_bytes, len(log.last.facts.missing)) == (70, None, 1)
    assert "--enable-unified-memory" in log.last.facts.missing[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("INFO 12-16 02:10:29 [kv_cache_utils.py:1286] GPU KV cache size: 282,240 tokens", "vLLM"),
        ("[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 100", "TensorRT-LLM"),
        ("llama_kv_cache: size = 1024.00 MiB", "llama.cpp"),
        ("INFO text_generation_launcher: Sharding model on 2 processes", "Text Generation Inference"),
    ],
)
def test_other_engine_is_told(text: str, name: str) -> None:
    """A kind sentence and no numbers; but a log with SGLang's lines is SGLang's whatever it mentions."""
    log = read_text(text)
    assert (log.other_engine, log.boots, len(log.problems)) == (name, (), 1)
    assert log.problems[0].sentence.startswith(f"This is a log of {name}, not of SGLang: ")
    assert read_text(f"{text}\n{BOOT}").other_engine is None


@pytest.mark.parametrize("text", ["", "\n\n", "nothing of the kind", "\x00\xff" * 100])
def test_text_without_a_boot(text: str) -> None:
    """One sentence that says what to paste."""
    log = read_text(text)
    assert (log.boots, log.last, len(log.problems)) == ((), None, 1)
    assert log.problems[0].sentence.endswith("Paste from “Load weight begin” to “max_total_num_tokens=”.")


def test_arguments_are_never_evaluated() -> None:
    """Calls and expressions are text; strings that look like keys do not count; nested values are passed over."""
    text = (
        "ServerArgs(model_path=__import__('os').getcwd(), a='page_size=1, tp_size=2', tp_size=8, x={'page_size': 3}, "
        "dcp_size=2+2, json='{\"pp_size\": 4}', page_size=64, hooks=[<function f at 0x7f>, (1, 2)])"
    )
    found = read_arguments(text)
    assert found
    assert (found.values, found.complete, found.keys) == ({"tp_size": 8, "page_size": 64}, True, 8)
    assert "dcp_size" in found.names
    assert read_arguments("{" + "[" * 100_000) is None
    assert read_arguments("{'tp_size': " + "9" * 100_000 + "}") is not None


def test_inputs_say_what_was_assumed() -> None:
    """Without flags and model: the middle in whole elements, and a sentence for each assumption."""
    log = read_text(f"{STATE}\n{MLA}\n{CAPPED}\n")
    assert log.last
    inputs = inputs_of(log.last.facts)
    assert inputs.values["state_bytes_per_slot"] == 56_184_164
    assert inputs.values["state_bytes_per_slot"] % 2 == 0
    assert inputs.values["kv_bytes_per_token"] == 13_822
    assert inputs.sources["state_bytes_per_slot"] == "boot log"
    assert inputs.sources["mamba_ssm_dtype"] == "assumed"
    assert "L: a boot log does not hold the context of a request. Enter it." in inputs.missing
    assert any("choose the model for the exact number" in sentence for sentence in inputs.assumed)


@pytest.mark.parametrize(("S", "requests"), [(5, 51), (4, 64), (3, 85), (1, 257)])
def test_inputs_lead_to_the_s_of_the_warning(S: int, requests: int) -> None:
    """Without flags in the log, the inputs are chosen so that solving uses the S that the engine used."""
    capped = CAPPED.replace("to 51", f"to {requests}").replace("5 state slots", f"{S} state slots")
    log = read_text(f"{STATE}\n{MLA}\n{capped}\n")
    assert log.last
    inputs = inputs_of(log.last.facts)
    scenario = read_scenario(inputs.values)
    assert isinstance(scenario, Scenario)
    assert (slots_per_request(scenario), log.last.facts.clamp) == (S, requests)
    assert log.last.facts.S_from == "clamp warning"
    assert facts_of([line._replace(form="another line") for line in log.last.lines]).S_from == "another line"
    assert any(source == "assumed" for source in inputs.sources.values())


def test_pipeline_stages_differ_without_conflict() -> None:
    """Bytes are of the stage that has most of them; stages of one model may print different sizes."""
    stages = "".join(
        f"[2026-01-15 10:00:05 PP{stage} TP0] {line}\n"
        for stage, line in (
            (0, STATE),
            (1, STATE.replace("13.04", "12.04")),
            (0, MLA.replace("15.03", "14.03")),
            (1, MLA),
        )
    )
    log = read_text(stages)
    facts = log.boots[0].facts
    assert (len(log.boots), facts.ranks, facts.conflicts) == (1, ("PP0 TP0", "PP1 TP0"), ())
    assert facts.slot_bytes
    assert facts.token_bytes
    assert facts.slot_bytes.value == pytest.approx(13.5 * 2**30 / 258)
    assert facts.token_bytes.value == pytest.approx(15.03 * 2**30 / 1_167_553)


# ---- damaged logs


def supported(log: Log, text: str) -> None:
    """Every number that a line gave stands in the text; facts are sound: bytes above 0, S and the clamp fit K."""
    whole = set(re.findall(r"\d+(?:\.\d+)?", re.sub(r"[\r\n]", "", text)))
    whole |= set(re.findall(r"\d+(?:\.\d+)?", text))
    values = {float(number) for number in whole if len(number) < 20}
    for boot in log.boots:
        for line in boot.lines:
            if line.form != "arguments":
                numbers = {abs(number) for number in numbers_of(line.record)}
                assert numbers <= values | {1.0, 0.0}, (line, numbers - values)
            assert isinstance(line.record, Refused) or all(number >= 0 for number in numbers_of(line.record))
        facts = boot.facts
        assert facts.slots is None or facts.slots in values
        assert facts.S is None or facts.S in (1, 3, 4, 5) or facts.S in values
        if facts.clamp is not None:
            assert facts.slots is not None
            assert facts.S
            assert facts.clamp == facts.slots // facts.S
        for measured in (facts.slot_bytes, facts.token_bytes, facts.draft_token_bytes):
            assert measured is None or measured.low <= measured.value <= measured.high
        assert isinstance(inputs_of(facts).values, dict)
        assert all(sentence.endswith(".") for sentence in (*facts.missing, *facts.conflicts))
    assert all(problem.sentence.endswith(".") for problem in log.problems)


def damaged(text: str, draw: random.Random) -> str:
    """One log with a few kinds of damage."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(lines)) if lines else 0
        line = lines[at] if lines else ""
        cut = draw.randrange(len(line) + 1)
        kind = draw.randrange(9)
        if kind == 0:
            lines[at : at + 1] = [line[:cut]]
        elif kind == 1:
            lines[at : at + 1] = [line[:cut] + "\n" + line[cut:]]
        elif kind == 2:
            lines[at : at + 1] = [line, line]
        elif kind == 3:
            draw.shuffle(lines)
        elif kind == 4:
            rubbish = bytes(draw.randrange(256) for _ in range(draw.randrange(60))).decode("latin-1")
            lines[at : at + 1] = [line[:cut] + rubbish + line[cut:]]
        elif kind == 5:
            lines[at : at + 1] = [line[:cut] + draw.choice("0123456789.,=:{}[]()'\"-") + line[cut + 1 :]]
        elif kind == 6:
            lines = lines[at:] + lines[:at]
        elif kind == 7:
            lines = lines[: at + 1]
        else:
            lines[at : at + 1] = [line[:cut] + line[draw.randrange(len(line) + 1) :]]
        lines = lines or [""]
    return "".join(lines)


def shortened(text: str) -> str:
    """A log whose arguments line has only the keys of 0.5.21's sample, so that damage falls on all lines alike."""
    return re.sub(r"server_args=.*", BOOT.splitlines()[0].partition("] ")[2].replace("\\", ""), text)


SOURCES = [shortened(BOOT), shortened(SPECULATIVE)] + [
    path.read_text(encoding="utf-8") for path in sorted((GOLDEN / "field").glob("*.log"))
]


@pytest.mark.parametrize("seed", range(8))
def test_damaged_log_raises_nothing_and_invents_nothing(seed: int) -> None:
    """Cut, broken, doubled, shuffled, overwritten and polluted logs: 4,000 of them, and the same ones each time."""
    draw = random.Random(seed)
    for _ in range(500):
        text = damaged(draw.choice(SOURCES), draw)
        supported(read_text(text), text)


@pytest.mark.parametrize("filler", ["x", "avail mem=", "Mamba Cache is allocated. ", "[[TP0] ", "{'a': ", "\x00"])
def test_line_of_megabytes(filler: str) -> None:
    """A line of megabytes before, around and behind the real ones changes nothing of them."""
    long = filler * (3_000_000 // len(filler))
    assert facts_text(read_text(f"{long}\n{BOOT}{long}")) == facts_text(read_text(BOOT))
    inside = read_text(f"{long} {TP0}{STATE}\n")
    assert [boot.facts.slots for boot in inside.boots] == [257]
