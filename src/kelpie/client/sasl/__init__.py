"""SASL: telling the broker who we are. One file for each mechanism, `exchange` for the conversation."""
