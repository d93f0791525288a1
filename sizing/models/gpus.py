"""GPUs by name with their memory.

Source: rest-before-boot.md section 2. A number after a GPU is a public boot log or nvidia-smi listing by its id.
"""

from typing import Literal, NamedTuple

Vendor = Literal["NVIDIA", "AMD"]


class Gpu(NamedTuple):
    """One GPU."""

    name: str
    memory_mib: int
    """What the engine reads: memory.total of nvidia-smi, Size of Pool 1 of rocminfo; the GB in the name are the
    vendor's, rounded, and mean now 10**9 and now 2**30 bytes."""
    source: str
    vendor: Vendor = "NVIDIA"
    unified: bool = False
    """Whether host and GPU share the memory; then only MemAvailable says what is free."""


GPUS = (
    Gpu("NVIDIA L4 24 GB", 23_034, "public nvidia-smi 71589812318, 49087902293"),
    Gpu("NVIDIA RTX 3090 24 GB", 24_576, "known value, not looked up"),
    Gpu("NVIDIA RTX 4090 24 GB", 24_564, "public nvidia-smi 48135459847, 9934846536"),
    Gpu("NVIDIA RTX 5090 32 GB", 32_607, "public nvidia-smi 55550718246, boot log 70468080142"),
    Gpu("NVIDIA A100 40 GB", 40_960, "public nvidia-smi 35141299213, 71233211083"),
    Gpu("NVIDIA L40S, L20, A6000 48 GB", 46_068, "with ECC; public nvidia-smi 70310070431 (L40S), 56745389816 (L20)"),
    Gpu("NVIDIA H100 80 GB", 81_559, "SXM and PCIe; public nvidia-smi 8134165308, 53110424929"),
    Gpu("NVIDIA A100 80 GB", 81_920, "SXM and PCIe; public nvidia-smi 32826874922, 1844595288"),
    Gpu("NVIDIA H100 NVL 94 GB", 95_830, "public nvidia-smi 71592505562, 56777991392"),
    Gpu("NVIDIA H20, GH200 96 GB", 97_871, "public nvidia-smi 53244009727 (H20), 25187769457 (GH200)"),
    Gpu("NVIDIA RTX PRO 6000 Blackwell 96 GB", 97_887, "public nvidia-smi 51775020357, 60661372536"),
    Gpu("NVIDIA H200 141 GB", 143_771, "public nvidia-smi 61400290898, 56717369822"),
    Gpu("NVIDIA H20-3e 141 GB", 143_771, "known value; only “143 GB” found, 61564093829"),
    Gpu("NVIDIA B200 180 GB", 183_359, "public nvidia-smi 58371658710, 9174932594"),
    Gpu("NVIDIA GB200 186 GB", 189_471, "public nvidia-smi 51864327511, 58750094259"),
    Gpu("NVIDIA B300 SXM6 288 GB", 275_040, "public nvidia-smi 57713776942, 70400318290"),
    Gpu("NVIDIA GB300 288 GB", 284_208, "public nvidia-smi 51884305790, 66256874927, name not in the excerpt"),
    Gpu("AMD Instinct MI300X 192 GB", 196_592, "rocminfo 201,310,208 KB, 29383123847, 69614445144", "AMD"),
    Gpu("AMD Instinct MI325X 256 GB", 262_128, "public logs 66428781202, 65718852927", "AMD"),
    Gpu(
        "AMD Instinct MI355X 288 GB", 294_896, "public logs 12038891190, 59245694153; a printed fraction agrees", "AMD"
    ),
)
# Kinds that share memory with the host: no estimate from this number, it differs by machine (66975556316).
UNIFIED_GPUS = (Gpu("NVIDIA GB10 (DGX Spark) 128 GB", 124_610, "total of the CUDA query, 66975556316", unified=True),)
ALL_GPUS = GPUS + UNIFIED_GPUS
