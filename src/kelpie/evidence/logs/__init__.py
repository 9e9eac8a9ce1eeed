"""Logs of clients and brokers: any layout, every age, every client.

    lines ─► wrappers, layouts ─► entries ─► matching, by the tables of each writer ─► events

lines          the lines of a file, of any length
wrappers       what Docker, Kubernetes and syslog put in front
layouts        where time, level, logger and message are
hints          layouts and time zones that the user describes
times          what a time means when its zone, year or date is missing
entries        a line and the stack trace behind it
matching       templates of messages, and the bracket before a message
java_client, java_coordinator, java_broker, librdkafka, kafka_python    the templates of each writer
exceptions     Kafka's exceptions in messages of applications
attribution    which group a line is about, when it does not say
pauses         how long a client that polled too late had paused
log_reader     all of that, for one file
"""

from kelpie.evidence.logs.log_reader import LogReader, LogReading, read_log
from kelpie.evidence.logs.times import Float

__all__ = ["Float", "LogReader", "LogReading", "read_log"]
