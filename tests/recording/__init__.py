"""Recordings of conversations between real clients and real brokers, and how they are made."""
