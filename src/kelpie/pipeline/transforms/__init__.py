"""From tables to tables: functions from DataFrames to a DataFrame, one module per table that comes out.

No session, no action, no cache, no clock in here; column expressions, and Arrow where a group has to be
folded. Whether rows come from a batch or from a stream, nobody here can tell.
"""
