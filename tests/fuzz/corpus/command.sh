SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1 sglang serve --model-path moonshotai/Kimi-K3 --tp 8 --dp-size=2 --enable-dp-attention --max-mamba-cache-size 371 --speculative-algorithm EAGLE
