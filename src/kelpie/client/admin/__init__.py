"""The admin client: one file for each question to a cluster.

- `admin`: the methods that people call; `synchronous`: the same without an event loop; `rows`: the answers.
- Questions: `topics`, `coordinators`, `groups`, `committed`, `log_ends`, `epochs`, `transactions`,
  `settings`.
- Changes: `changes` (commits, deletions, at coordinators), `controller` (elections, reassignments).
- `asking`: one round of questions; `rounds`: rounds with patience, where an error may pass.

The survey (`client.survey`) asks the same questions, in an order of its own.
"""
