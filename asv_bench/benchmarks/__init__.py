"""The benchmarks that asv runs: a file for each part of the library, one class for each operation."""
