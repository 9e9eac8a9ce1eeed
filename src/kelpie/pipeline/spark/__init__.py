"""Spark itself: how it is started, what executors need, and what its errors mean."""
