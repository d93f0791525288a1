"""What follows: the solve, the best split, curves, sweeps, comparisons, targets."""
