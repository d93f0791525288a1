"""From a model, a GPU and flags to `rest`, without a boot log. Source: rest-before-boot.md."""
