"""Element types of the two caches, and how many bytes each takes."""

from typing import Literal

StateDtype = Literal["float32", "bfloat16", "float16"]
KvDtype = Literal["bfloat16", "fp8_e4m3", "fp8_e5m2"]

# `--mamba-ssm-dtype` and SGLANG_MAMBA_CONV_DTYPE take these three (engine-sizing.md section 2).
STATE_ITEMSIZE: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
# fp8 halves a plain MLA or GQA row exactly (engine-sizing.md section 3); scaled layouts are not offered here.
KV_ITEMSIZE: dict[str, int] = {"bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1}
