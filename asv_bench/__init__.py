"""Benchmarks: `benchmarks/` for asv, which keeps a history, and `ratios` for one look at this machine."""
