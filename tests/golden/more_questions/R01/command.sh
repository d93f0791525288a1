# sglang 0.5.21
sglang serve --model-path nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-NVFP4 --tp 4 --nnodes 4 --kv-cache-dtype fp8_e4m3 --max-running-requests 32 --trust-remote-code
