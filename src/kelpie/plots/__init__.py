"""Pictures of what simulators counted, drawn by matplotlib (the extra `plots`); one file per picture.

Only these modules import matplotlib. A command imports them when a picture is asked for.
"""
