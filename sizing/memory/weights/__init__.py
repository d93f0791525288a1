"""The weights of a model on one rank, counted from its config.json. Source: rest-before-boot.md section 3.2."""
