"""The engine's own rules: slots per request, pools, limits, split, allocation."""
