docker run --rm --gpus all -p 30000:30000 lmsysorg/sglang:dev \
python3 -m sglang.launch_server --model-path Qwen/Qwen3.8-Flash-Next --page-size 64 \
  --max-running-requests 4 --chunked-prefill-size 4096 \
  --cuda-graph-max-bs-decode 4 --cuda-graph-max-bs-prefill 4 \
  --mamba-ssm-dtype bfloat16 --max-mamba-cache-size 48 \
  --mamba-radix-cache-strategy extra_buffer --mamba-track-interval 64 \
  --linear-attn-decode-backend flashinfer --linear-attn-prefill-backend flashinfer \
  --enable-cache-report --ple-offload-embedding \
  --speculative-algorithm NEXTN --speculative-num-steps 3 \
  --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 \
  --enable-lora --max-lora-rank 32 --max-loras-per-batch 7 --lora-paths <7 adapters> \
  --enable-hierarchical-cache --hicache-size 96 \
  --hicache-write-policy write_through --hicache-mem-layout page_first \
  --hicache-io-backend direct
