"""Texts of a running server, made from the documented forms of each release; nothing here is read from the product.

Source: running-server.md 4.2 to 4.5.
"""

import json
from typing import Any, NamedTuple

from sizing.releases.rules import RELEASES

Values = dict[str, Any]


def since(release: str, first: str) -> bool:
    """Whether a release is `first` or newer."""
    return RELEASES.index(release) >= RELEASES.index(first)


class Moment(NamedTuple):
    """What runs at one moment on one rank."""

    second: int
    running: int
    queued: int
    tokens: int
    slots: int
    cached: int = 0


class Server(NamedTuple):
    """One rank of a server, and how large its pools are."""

    release: str = "0.5.23"
    rank: str = "TP0"
    slots: int = 257
    tokens: int = 1_167_552
    limit: int = 51
    role: str = ""
    source: str = ""

    def prefix(self, second: int) -> str:
        """As the engine begins a line."""
        rank = f" {self.rank}" if self.rank else ""
        clock = f"{10 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        return f"{self.source}[2026-01-15 {clock}{rank}] "

    def counter(self) -> str:
        """0.5.4 numbers its batches."""
        return " [7]" if self.release == "0.5.4" else ""

    def decode(self, at: Moment, hybrid: bool = True) -> str:
        """A decode batch line."""
        full = "full " if hybrid else ""
        window = "#swa token: 812, swa token usage: 0.02, " if self.role == "window" else ""
        state = f"mamba num: {at.slots}, mamba usage: {at.slots / self.slots:.2f}, " if hybrid else ""
        drafts = "accept len: 2.41, accept rate: 0.60, " if self.role == "drafts" else ""
        pd = (
            "pre-allocated usage: 0.03, #prealloc-req: 2, #transfer-req: 1, #retracted-req: 0, "
            if self.role == "decode"
            else ""
        )
        end = "" if since(self.release, "0.5.9") else ", "
        return (
            f"{self.prefix(at.second)}Decode batch{self.counter()}, #running-req: {at.running}, #{full}token: "
            f"{at.tokens}, {full}token usage: {at.tokens / self.tokens:.2f}, {window}{state}{drafts}{pd}cuda graph: "
            f"True, gen throughput (token/s): 812.40, #queue-req: {at.queued}{end}\n"
        )

    def prefill(self, at: Moment) -> str:
        """A prefill batch line."""
        pending = "#pending-token: 77, " if since(self.release, "0.5.11") else ""
        pd = "#bootstrap-req: 1, #inflight-req: 2, " if self.role == "prefill" else ""
        graph, speed = "cuda graph: False", "input throughput (token/s): 91.50"
        if since(self.release, "0.5.10"):
            end = f"{graph}, {speed}"
        elif self.release == "0.5.9":
            end = f"{speed}, {graph}"
        else:
            end = f"{graph}, "
        return (
            f"{self.prefix(at.second)}Prefill batch{self.counter()}, #new-seq: 1, #new-token: 512, #cached-token: 0, "
            f"full token usage: {at.tokens / self.tokens:.2f}, mamba usage: {at.slots / self.slots:.2f}, #running-req: "
            f"{at.running}, #queue-req: {at.queued}, {pending}{pd}{end}\n"
        )

    def retraction(self, second: int, requests: int, aborted: int = 0, slots: int = 4) -> str:
        """A retraction line."""
        pieces = [f"#retracted_reqs: {requests}"]
        if self.release == "0.5.4":
            pieces.append(f"#aborted_retracted_reqs: {aborted}")
        if since(self.release, "0.5.7"):
            pieces.append("#new_tokens_gained: 9216")
        if since(self.release, "0.5.11"):
            pieces.append(f"#mamba_num_gained: {slots}")
        pieces.append("#new_token_ratio: 0.1012 -> 0.2450")
        return f"{self.prefix(second)}KV cache pool is full. Retract requests. {', '.join(pieces)}\n"

    def scrape(self, at: Moment, retracted: int = 0, mark: bool = True, labels: str = "") -> str:
        """One scrape of /metrics."""
        kv, state = at.tokens / self.tokens, at.slots / self.slots
        gauges: dict[str, float] = {
            "num_running_reqs": at.running, "num_queue_reqs": at.queued, "num_used_tokens": at.tokens,
            "token_usage": max(kv, state) if since(self.release, "0.5.10") else kv,
        }  # fmt: skip
        if since(self.release, "0.5.5"):
            gauges["mamba_usage"] = state
        if since(self.release, "0.5.6"):
            gauges["max_total_num_tokens"] = self.tokens
        if since(self.release, "0.5.7"):
            gauges["num_retracted_requests_total"] = retracted
        if since(self.release, "0.5.10"):
            gauges["full_token_usage"] = kv
        if since(self.release, "0.5.12"):
            gauges |= {
                "mamba_used_tokens": at.slots,
                "mamba_evictable_tokens": at.cached,
                "mamba_available_tokens": self.slots - at.slots - at.cached,
            }
        numbers = {"DP": "dp_rank", "PP": "pp_rank", "TP": "tp_rank"}
        ranks = [f'{numbers[part[:2]]}="{part[2:]}"' for part in self.rank.split()]
        inside = ",".join(['engine_type="unified"', 'model_name="org/model"', *ranks, *([labels] if labels else [])])
        lines = [
            f"# HELP sglang:{name} help\n# TYPE sglang:{name} gauge\nsglang:{name}{{{inside}}} {_prometheus(value)}\n"
            for name, value in gauges.items()
        ]
        return (f"# scrape {at.second + 1_768_471_200}\n" if mark else "") + "".join(lines)

    def loads(self, at: Moment, retracted: int = 0) -> Values:
        """One answer of /v1/loads."""
        kv = at.tokens / self.tokens
        load: Values = {
            "dp_rank": 0, "timestamp": f"2026-01-15T10:{at.second // 60:02d}:{at.second % 60:02d}+00:00",
            "num_running_reqs": at.running, "num_waiting_reqs": at.queued, "num_used_tokens": at.tokens,
            "max_total_num_tokens": self.tokens, "token_usage": round(kv, 4), "gen_throughput": 812.4,
            "cache_hit_rate": 0.0, "utilization": 0.4, "max_running_requests": self.limit,
        }  # fmt: skip
        if since(self.release, "0.5.17"):
            load["queues"] = {"waiting": at.queued, "grammar": 0, "paused": 0, "retracted": retracted}
        return {"version": self.release, "dp_rank_count": 1, "loads": [load], "aggregate": {"total_running_reqs": 1}}

    def info(self, **arguments: Any) -> Values:
        """One answer of /server_info: the user's arguments, and those of each rank after sizing."""
        fine = since(self.release, "0.5.17")
        strategy = "mamba_radix_cache_strategy" if since(self.release, "0.5.14") else "mamba_scheduler_strategy"
        args: Values = {
            "model_path": "moonshotai/Kimi-K3", "tp_size": 8, "pp_size": 1, "dp_size": 1, "enable_dp_attention": False,
            "page_size": 64, "mem_fraction_static": 0.85, "max_running_requests": None, "max_total_tokens": None,
            "max_mamba_cache_size": None, "mamba_full_memory_ratio": 0.9, "mamba_ssm_dtype": None,
            "kv_cache_dtype": "fp8_e4m3", strategy: "extra_buffer", "disable_radix_cache": False,
            "disable_overlap_schedule": False, "speculative_algorithm": None, "speculative_num_draft_tokens": None,
            "disaggregation_mode": "null", "mamba_track_interval": 256, "context_length": 262_144,
            "served_model_name": "kimi, the third", "api_key": None,
        }  # fmt: skip
        args |= arguments
        memory: Values = {"weight": 120.5 if not fine else 120.512, "kvcache": 15.03 if not fine else 15.033}
        memory |= {"token_capacity": self.tokens, "graph": {"decode": 1.5, "prefill": 0.25} if fine else 1.75}
        if fine:
            memory |= {"startup_available": 177.512, "token_capacity_swa": 0}
        inner = args | {"max_mamba_cache_size": self.slots, "last_gen_throughput": 812.4, "memory_usage": memory}
        if since(self.release, "0.5.8"):
            inner["effective_max_running_requests_per_dp"] = self.limit
        return {
            **args,
            "max_total_num_tokens": self.tokens,
            "max_req_input_len": 262_138,
            "internal_states": [inner],
            "version": self.release,
            "launch_command": "python -m sglang.launch_server --model-path moonshotai/Kimi-K3 --tp-size 8",
        }


def _prometheus(value: float) -> str:
    """As its Python client prints a float."""
    return repr(float(value))


def pretty(value: Values) -> str:
    """As `python -m json.tool` and jq print it."""
    return json.dumps(value, indent=4) + "\n"


ASSERTIONS = {
    "new request": "AssertionError: Not enough space for mamba cache, try to increase --mamba-full-memory-ratio or "
    "--max-mamba-cache-size\n",
    "chunk border": "AssertionError: Can not alloc mamba cache\n",
}

UNIFIED = """\
[2026-01-15 10:00:01 TP0] [unified-memory-pool] UnifiedKVPool allocated: total_bytes=35.96 GB (=38616072192 B), 2 sub-pool(s)
[2026-01-15 10:00:01 TP0] [unified-memory-pool]   sub-pool 'mamba': kind=state, layer_num=36, grow=up, entry_bytes=38633472, max_slots=999, min_slot_index=1 (slots [0,1) reserved)
[2026-01-15 10:00:01 TP0] [unified-memory-pool]   sub-pool 'full': kind=mha, layer_num=12, grow=down, entry_bytes=12288, max_slots=3142583, min_slot_index=3144 (slots [0,3144) reserved)
[2026-01-15 10:00:01 TP0] [unified-memory-pool]   full_layers=12, mamba_layers=36, head_num=1, page_size=1 (entry_bytes=12288 B)
[2026-01-15 10:00:01 TP0] [unified-memory-pool]   total_bytes=38616072192, max_total_num_tokens=1658616, max_mamba_cache_size=472, max_num_reqs=94, speculative_num_draft_tokens=None
"""  # noqa: E501

# The arguments of a server with one buffer, which gives the numbers of UNIFIED.
ARGUMENTS = {
    "model_path": "org/unknown-hybrid", "tp_size": 8, "pp_size": 1, "dp_size": 1, "dcp_size": 1, "page_size": 1,
    "mem_fraction_static": 0.85, "max_running_requests": None, "max_total_tokens": None, "max_mamba_cache_size": None,
    "mamba_full_memory_ratio": 0.9, "mamba_ssm_dtype": None, "kv_cache_dtype": "auto", "context_length": 262_144,
    "mamba_radix_cache_strategy": "extra_buffer", "disable_radix_cache": False, "disable_overlap_schedule": False,
    "speculative_algorithm": None, "disaggregation_mode": "null", "enable_dp_attention": False,
    "enable_unified_memory": True,
}  # fmt: skip
UNIFIED_BOOT = f"[2026-01-15 10:00:00] server_args={ARGUMENTS!r}\n{UNIFIED}"
