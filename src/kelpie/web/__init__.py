"""Pages about clusters, for a browser, and their numbers for Prometheus: what `kelpie serve` runs.

Clusters are examined in the background; a page shows the last look and says how old it is. Everything works
without JavaScript. Names come from others, so templates escape all that they print.
"""
