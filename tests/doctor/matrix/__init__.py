"""Each ordinary situation of production, for each kind of group, on real Kafka; recorded once, and replayed.

`members` are the applications, `situations` what happens to them, `watching` examines all the while, as
`kelpie doctor --watch` does, and `recording` keeps what each examination saw.
"""
