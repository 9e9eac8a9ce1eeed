"""Benchmarks: each compares Kelpie with a peer in the same run, on the same machine."""
