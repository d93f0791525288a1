python3 -m sglang.launch_server --model-path nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 --device xpu --tp=4 --trust-remote-code \
  --disable-overlap-schedule --disable-radix-cache --page-size 64 --attention-backend intel_xpu \
  --mem-fraction-static 0.85 --context-length 8192 --chunked-prefill-size 1024 --max-running-requests 8 --cuda-graph-max-bs 8
