#!/bin/sh
# starts the server
TP=8
exec sglang serve --model-path moonshotai/Kimi-K3 --tp $TP \
  --kv-cache-dtype fp8_e4m3 --mamba-full-memory-ratio 0.9
