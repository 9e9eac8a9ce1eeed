"""The plans on a virtual clock: brokers, a store and consumers. One seed decides all that is random.

The clock is `kelpie.simulation.agenda`. `store_session` delays and loses what brokers ask of the store.
`broker`, `group` and `consumer` act; `scenarios` says what happens when. `samples` knows the truth of each
fetch. `trials` runs many seeds and adds their results up.
"""
