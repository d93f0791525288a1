#!/usr/bin/env bash
set -euo pipefail

CACHE_ARGS=()
if require_agentic_kv_offload_backend hicache; then
    HICACHE_RATIO="${HICACHE_RATIO:-1.5}"
    CACHE_ARGS=(
        --enable-hierarchical-cache
        --hicache-ratio "$HICACHE_RATIO"
    )
fi

PARALLEL_ARGS=(
    --tp "$TP"
    --dp 1
    --ep-size "$EP_SIZE"
)

MAX_RUNNING_REQUESTS=$((2 * CONC))
export SGLANG_MAMBA_SSM_DTYPE=bfloat16

SGLANG_CMD=(
    python3 -m sglang.launch_server
    --model-path "$MODEL_PATH"
    --trust-remote-code
    "${PARALLEL_ARGS[@]}"
    --attention-backend aiter
    --mem-fraction-static 0.80
    --model-loader-extra-config '{"enable_multithread_load": true}'
    --page-size 16
    --kv-cache-dtype fp8_e4m3
    --cuda-graph-max-bs-decode "$CUDA_GRAPH_MAX_BS"
    --max-running-requests "$MAX_RUNNING_REQUESTS"
    --speculative-algorithm EAGLE
    --speculative-num-steps 3
    --speculative-eagle-topk 1
    --speculative-num-draft-tokens 4
    --enable-metrics
    "${CACHE_ARGS[@]}"
)
"${SGLANG_CMD[@]}" > "$SERVER_LOG" 2>&1 &
