"""Boot logs of any release in RELEASES: what each line says, the facts of each boot, and a Scenario's inputs.

>>> from sizing.bootlog import exact_bytes, inputs_of, read_text
>>> from sizing.models import entry, read_config
>>> log = read_text('''
... Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ssm_state size: 13.04GB
... KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1167552, KV size: 15.03 GB
... ''')
>>> facts = log.last.facts
>>> f"{facts.slot_bytes.value / 1e6:.2f} MB, {facts.token_bytes.value / 1e3:.1f} KB"
'56.18 MB, 13.8 KB'
>>> exact = exact_bytes(facts, read_config(entry("moonshotai/Kimi-K3").config), tp_size=8)
>>> exact.state, exact.kv
(56171520, 13824)
"""

from sizing.bootlog.exact import Exact, exact_bytes
from sizing.bootlog.facts import Facts
from sizing.bootlog.inputs import Inputs, inputs_of
from sizing.bootlog.log import Boot, Log, read_chunks, read_file, read_text
from sizing.bootlog.measure import Measured, Printed, bytes_per_slot_between
from sizing.bootlog.refusals import RefusedBoot

__all__ = [
    "Boot",
    "Exact",
    "Facts",
    "Inputs",
    "Log",
    "Measured",
    "Printed",
    "RefusedBoot",
    "bytes_per_slot_between",
    "exact_bytes",
    "inputs_of",
    "read_chunks",
    "read_file",
    "read_text",
]
