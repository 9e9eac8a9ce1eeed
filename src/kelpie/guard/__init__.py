"""Keeps a consumer going that does not recover by itself: ends it and starts it again.

    lines of its output and logs ─► sightings ─► judgement ─► supervision ─► orders ─► runner

lines          bytes to lines
sightings      what a line shows, if it has the shape of a line that the client wrote
judgement      which sightings, over time, are fatal
budget         back-off, and the limit of restarts in an hour
supervision    the life of the process as a machine
pump, process, signals, log_files, speaker, metrics, runner    the same with real processes and files
handler        for consumers in Python: a logging.Handler that does it inside the process

Machines (`sightings`, `judgement`, `budget`, `supervision`) do no input or output; time and chance are
arguments.
"""

from kelpie.guard.handler import GuardHandler, exit_process, restart_process
from kelpie.guard.judgement import Fatal, Limits, Sign

__all__ = ["Fatal", "GuardHandler", "Limits", "Sign", "exit_process", "restart_process"]
