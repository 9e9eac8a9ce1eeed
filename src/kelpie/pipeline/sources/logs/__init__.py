"""Logs of brokers and clients into `log_event`."""
