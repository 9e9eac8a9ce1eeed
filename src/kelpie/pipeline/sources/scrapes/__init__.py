"""Scrapes of metrics into `metric_sample`."""
