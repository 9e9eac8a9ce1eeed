"""What `--json` prints, declared: one module per document, with the function that makes it.

Names of groups, topics and members are as the cluster has them. Times are ISO 8601 in UTC with milliseconds,
or milliseconds since 1970 where a field says so. What is not known is null. docs/schemas/ has a schema of
each document, made by `python -m kelpie.cli.reference docs`. That of `kelpie doctor` is written by hand: it
also says how codes and ids look.
"""
