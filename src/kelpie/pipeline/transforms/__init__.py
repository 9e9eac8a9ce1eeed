"""From tables to tables: functions from DataFrames to a DataFrame, one module per table that comes out.

No session, no action, no cache, no clock in here; column expressions, and Arrow where the rows of a group
must be folded. The functions are the same for batch and stream.
"""
