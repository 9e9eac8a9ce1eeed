"""Whole surveys, and all readers of files, against what a broken or hostile peer sends or leaves."""
