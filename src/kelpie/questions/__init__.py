"""Requests to brokers, independent of versions: one file for each API. See question.py."""
