python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-397B-A17B-FP8 --disaggregation-mode decode --disaggregation-transfer-backend mooncake --tp-size 8 \
  --mamba-scheduler-strategy extra_buffer --max-mamba-cache-size 750 --max-running-requests 250
