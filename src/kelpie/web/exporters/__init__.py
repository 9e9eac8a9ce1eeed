"""The same numbers under names of other exporters, so that dashboards and alerts made for them go on.

One file for each exporter. docs/metrics.md says what of each is not there, and why.
"""
