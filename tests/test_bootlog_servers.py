"""What a log is of: several ranks, servers and boots, a server that died, a text that is no log or not all of one."""

import gzip
import random
import re
from pathlib import Path

import pytest

from sizing.bootlog import Facts, Log, read_chunks, read_text

GOLDEN = Path(__file__).parent / "golden" / "boot_logs"
BOOT = (GOLDEN / "0.5.21_kda_mla_tp8.log").read_text(encoding="utf-8")
SPECULATIVE = (GOLDEN / "0.5.23_gdn_gqa_tp4_eagle4.log").read_text(encoding="utf-8")
TP0 = "[10:00:05 TP0] "


def facts(text: str) -> Facts:
    """Of the boot that counts."""
    last = read_text(text).last
    assert last
    return last.facts


def of_ranks(text: str, ranks: int = 4) -> list[list[str]]:
    """A boot's lines for each of so many ranks, the arguments line alone in front."""
    first, *others = text.splitlines()
    return [[first], *([line.replace("TP0", f"TP{rank}") for line in others] for rank in range(ranks))]


def shuffled(ranks: list[list[str]], draw: random.Random) -> str:
    """The lines of all ranks in a random order in which each rank's own lines stay in theirs."""
    order = [at for at, lines in enumerate(ranks) for _ in lines]
    draw.shuffle(order)
    rest = [iter(lines) for lines in ranks]
    return "\n".join(next(rest[at]) for at in order) + "\n"


UNLIKE = {
    "slots": ("max_mamba_cache_size: 728", "max_mamba_cache_size: 727"),
    "state": ("ssm_state size: 12.81GB", "ssm_state size: 12.91GB"),
    "tokens": ("#tokens: 2226368", "#tokens: 2226304"),
    "KV": ("K size: 12.74 GB", "K size: 12.94 GB"),
    "draft KV": ("K size: 1.06 GB", "K size: 1.16 GB"),
    "weights": ("avail mem=76.70 GB", "avail mem=76.10 GB"),
}


@pytest.mark.parametrize("unlike", ["none", *UNLIKE])
def test_order_of_ranks_changes_nothing(unlike: str) -> None:
    """Lines of ranks interleave as they like, also where one rank differs; and which rank it is does not matter."""
    draw = random.Random(unlike)
    ranks = of_ranks(SPECULATIVE)
    if unlike != "none":
        ranks[3] = [line.replace(*UNLIKE[unlike]) for line in ranks[3]]
    expected = facts("\n".join(line for lines in ranks for line in lines) + "\n")
    for _ in range(20):
        assert facts(ranks[0][0] + "\n" + shuffled(ranks[1:], draw)) == expected
    names = {"TP0]": "TP2]", "TP2]": "TP0]"}
    exchanged = facts(re.sub(r"TP[02]\]", lambda found: names[found[0]], "\n".join(map("\n".join, ranks))))
    named = {"by_rank", "ranks_differ", "conflicts"}
    assert exchanged.model_dump(exclude=named) == expected.model_dump(exclude=named)


def test_ranks_that_differ_are_said() -> None:
    """The least of slots, tokens and memory, no bytes of one rank for all, and a sentence with both numbers."""
    alike = facts("\n".join(line for lines in of_ranks(SPECULATIVE) for line in lines))
    assert (alike.ranks_differ, len(alike.by_rank)) == ("", 4)
    found = {}
    for name, change in UNLIKE.items():
        ranks = of_ranks(SPECULATIVE)
        ranks[3] = [line.replace(*change) for line in ranks[3]]
        found[name] = facts("\n".join(line for lines in ranks for line in lines))
    assert found["slots"].slots == 727
    assert found["tokens"].kv_rows == 2_226_304
    assert found["state"].slot_bytes is None
    assert found["KV"].token_bytes is None
    assert found["draft KV"].draft_token_bytes is None
    for name in ("slots", "tokens", "state", "KV", "draft KV"):
        assert found[name].ranks_differ.startswith("Ranks differ: "), name
        assert "TP2" in found[name].ranks_differ
    weights = found["weights"]
    assert weights.end_gib
    assert weights.end_gib.value == 76.1
    assert weights.rest_from_weights
    assert weights.rest_from_weights.holds(76.1 - 178 * (1 - 0.85))


# ---- a trimmed paste


def without(text: str, *starts: str) -> str:
    """A text without its lines that hold one of these."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(start in line for start in starts))


def test_a_drafts_kv_line_is_never_the_targets() -> None:
    """Behind `Memory pool end` it is the draft's; where neither tells, it is nobody's."""
    whole = facts(SPECULATIVE)
    assert whole.draft_token_bytes
    assert whole.token_bytes
    behind = facts(without(SPECULATIVE, "K size: 12.74"))
    assert (behind.token_bytes, behind.draft_token_bytes) == (None, whole.draft_token_bytes)
    alone = facts(without(SPECULATIVE, "K size: 12.74", "Memory pool end"))
    assert (alone.token_bytes, alone.draft_token_bytes, alone.attention) == (None, None, None)
    assert alone.token_bytes_of_either == whole.draft_token_bytes
    assert alone.rest_from_pools is None
    target = facts(without(SPECULATIVE, "K size: 1.06"))
    assert (target.token_bytes, target.draft_token_bytes) == (whole.token_bytes, None)
    both = facts(without(SPECULATIVE, "Memory pool end"))
    assert (both.token_bytes, both.draft_token_bytes) == (whole.token_bytes, whole.draft_token_bytes)


@pytest.mark.parametrize("drop", range(1, len(SPECULATIVE.splitlines())))
def test_a_missing_line_takes_its_numbers_along(drop: int) -> None:
    """Any line but the flags left out: what is still said is as in the whole log."""
    lines = SPECULATIVE.splitlines(keepends=True)
    whole, left = facts(SPECULATIVE), facts("".join(lines[:drop] + lines[drop + 1 :]))
    for name in ("slots", "S", "kv_rows", "kv_tokens", "running", "draft_tokens", "token_bytes", "draft_token_bytes"):
        assert getattr(left, name) in (None, getattr(whole, name)), name
    pools = left.rest_from_pools
    assert pools is None or (pools.low <= 50.0 <= pools.high)


# ---- servers and boots


PREFIXES = {
    "compose": ("sglang-a-1  | {}", "sglang-b-1  | {}"),
    "kubectl --prefix": ("[pod/engine-0/sglang] {}", "[pod/engine-1/sglang] {}"),
    "stern": ("engine-0 sglang {}", "engine-1 sglang {}"),
    "pod in brackets": ("[engine-0] {}", "[engine-1] {}"),
    "pod and colon": ("engine-0: {}", "engine-1: {}"),
    "journal": ("Jan 15 10:00:05 node7 sglang[42]: {}", "Jan 15 10:00:05 node8 sglang[43]: {}"),
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("interleaved", [False, True])
def test_two_pods_in_one_paste(prefix: str, interleaved: bool) -> None:
    """Two servers are told apart, and no number of one stands beside one of the other."""
    other = BOOT.replace("cache_size: 257", "cache_size: 100").replace("requests=51", "requests=20")
    marks = zip(PREFIXES[prefix], (BOOT, other), strict=True)
    pods = [[mark.format(line) for line in text.splitlines()] for mark, text in marks]
    lines = [line for pair in zip(*pods, strict=True) for line in pair] if interleaved else pods[0] + pods[1]
    log = read_text("\n".join(lines) + "\n")
    assert (len(log.servers), len(log.boots), len(log.last_server)) == (2, 2, 1)
    assert sorted((boot.facts.slots, boot.facts.running) for boot in log.boots) == [(100, 20), (257, 51)]
    assert log.last
    assert log.last.source == log.servers[-1] != ""


def test_several_boots_of_one_server() -> None:
    """The last counts, and the others are there."""
    log = read_text(
        BOOT + BOOT.replace("10:00", "11:00").replace("max_mamba_cache_size: 257", "max_mamba_cache_size: 300")
    )
    assert (len(log.servers), len(log.last_server)) == (1, 2)
    assert log.last
    assert log.last.facts.slots == 300


@pytest.mark.parametrize(
    "end",
    [
        "Scheduler hit an exception: Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB.",
        "Received sigquit from a child process. It usually means the child failed.",
        "AssertionError: Can not alloc mamba cache",
        "RuntimeError: HIP out of memory.",
    ],
)
def test_a_server_that_died_after_its_pools(end: str) -> None:
    """Its numbers stay; before any pool it only failed, unless the error itself says that there were pools."""
    log = read_text(f"{BOOT}{end}\n")
    assert log.last
    assert (log.last.died_later, log.last.facts.slots) == (True, 257)
    early = read_text("\n".join(BOOT.splitlines()[:3]) + f"\n{end}\n").last
    assert early
    assert (early.died_later, early.crashed) == ("mamba cache" in end, True)


# ---- numbers in warnings and refusals


def test_warnings_and_refusals_give_their_numbers() -> None:
    """What a warning or a refusal prints is a fact, with the ends that its decimals leave."""
    capped = facts(
        f"{TP0}max_running_requests is capped to 2 by the mamba state cache (max_mamba_cache_size=10, 5 state slots "
        "per request). To raise it: ...\n"
    )
    assert (capped.slots, capped.S, capped.clamp, capped.running) == (10, 5, 2, 2)
    reduced = facts(
        f"{TP0}max_running_requests was reduced from the requested 500 to 90 (per dp worker) due to the available KV "
        "cache capacity.\n"
    )
    assert (reduced.asked, reduced.running) == (500, 90)
    none = facts(
        "RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests.\n"
        "max_mamba_cache_size=3, mamba_ratio=5, resulting max_num_reqs=0.\n"
    )
    assert (none.slots, none.S, none.S_from, none.clamp) == (3, 5, "refusal", 0)
    state = facts(
        "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
        "max_mamba_cache_size=-28 (total_rest_memory=-7.96 GB, mamba_cache_per_req=146.81 MB). Try: (1) reduce\n"
    )
    assert (state.slots, state.clamp) == (None, None)
    assert state.rest
    assert state.rest == pytest.approx((-7.96, -7.965, -7.955))
    assert state.slot_bytes
    assert state.slot_bytes == pytest.approx((146.81 * 2**20, 146.805 * 2**20, 146.815 * 2**20))
    kv = facts(
        f"{TP0}Load weight begin. avail mem=78.48 GB\nValueError: Loaded weights leave no GPU memory for the KV cache "
        "under --mem-fraction-static=0.85. Raise --mem-fraction-static above 0.912 (minimum viable = 1 - available/pre "
        "= 0.9114). If using speculative decoding, draft weights are now counted.\n"
    )
    assert kv.mem_fraction_least == 0.9114


@pytest.mark.parametrize(
    "words",
    [
        "Disabling Radix Cache for KimiLinearForCausalLM as it is not yet supported.",
        "Radix cache is disabled for decode server",
        "KV cache is forced as chunk cache for decode server",
    ],
)
def test_radix_cache_off_by_the_engine(words: str) -> None:
    """One slot a request, and the engine's own words."""
    found = facts(f"[2026-04-20 09:14:02] WARNING: {words}\n" + "\n".join(BOOT.splitlines()[1:]) + "\n")
    assert (found.S, found.S_from, found.radix_off) == (1, "radix cache off", words.rstrip("."))


def test_a_decode_server_allocates_more_than_it_was_charged() -> None:
    """K is the first number of the warning; sizes are of the slots that the state line names."""
    found = facts(
        f"{TP0}mamba_size (24) is less than decode side's max_slots_needed (72 = 72 reqs * 1 slots/req), raising "
        f"effective_mamba_size to 72\n{TP0}Mamba Cache is allocated. max_mamba_cache_size: 72, conv_state size: "
        f"0.46GB, ssm_state size: 13.04GB \n{'-' * 300}\n"
    )
    assert (found.slots, found.slots_allocated) == (24, 72)
    assert found.slot_bytes
    assert found.slot_bytes.holds(13.5 * 2**30 / 73)


# ---- what a text is


KINDS = {
    "nothing": ("", "unreadable"),
    "blanks": ("\n \n", "unreadable"),
    "binary": ("\x00\x01\x02" * 50, "unreadable"),
    "a recipe": ("model: m\nmem-fraction-static: 0.9\nmax-running-requests: 32\n", "not_a_log"),
    "prose": ("The server has 257 slots.\n", "not_a_log"),
    "vLLM": ("INFO 12-16 02:10:29 [kv_cache_utils.py:1286] GPU KV cache size: 282,240 tokens", "other_engine"),
    "SGLang": (BOOT, "boots"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_text(name: str) -> None:
    """A log of SGLang, of another engine, no log, or nothing that can be read."""
    text, kind = KINDS[name]
    assert read_text(text).kind == kind


def test_packed_text_that_breaks_off() -> None:
    """Before any line it cannot be read; behind a boot it is cut short."""
    packed = gzip.compress(BOOT.encode())
    assert read_chunks([packed[:30]]).kind == "unreadable"
    twice: Log = read_chunks([gzip.compress(BOOT.encode()) + gzip.compress(BOOT.encode())[:60]])
    assert (twice.kind, twice.cut_short) == ("boots", True)


def test_flags_that_stand_elsewhere() -> None:
    """A launch line in the log that names a file or variables."""
    log = read_text(f"+ python -m sglang.launch_server --config recipe.yaml --tp-size $TP --page-size 64\n{BOOT}")
    assert log.flags_elsewhere == ("--config recipe.yaml", "--tp-size $TP")
    assert read_text(BOOT).flags_elsewhere == ()


@pytest.mark.parametrize("cut", [False, True])
def test_lines_that_are_cut_are_named(cut: bool) -> None:
    """A whole boot has none."""
    text = "\n".join(line[:120] for line in BOOT.splitlines()) if cut else BOOT
    last = read_text(text).last
    assert last
    assert bool(last.cut) is cut


# ---- colours inside a message


CODES = ("\x1b[1m", "\x1b[0m", "\x1b[38;2;255;128;0m", "\x1b[K", "\x1b(B", "\x1b]8;;file:///log\x1b\\")


@pytest.mark.parametrize("size", ["short", "long"])
def test_colours_anywhere_change_nothing(size: str) -> None:
    """Codes within words and numbers, and across the blocks of a long log."""
    draw = random.Random(size)
    coloured = "".join(char + draw.choice(CODES) if draw.random() < 0.2 else char for char in BOOT)
    expected = facts(BOOT)
    if size == "short":
        assert facts(coloured) == expected
        return
    serving = (
        "[2026-01-15 10:10:00 TP0] \x1b[32mINFO\x1b[0m: a line of traffic, of which there are very many\n" * 60_000
    )
    raw = (coloured + serving).encode()
    for step in (1 << 20, 65_537):
        last = read_chunks([raw[at : at + step] for at in range(0, len(raw), step)]).last
        assert last
        assert last.facts == expected
