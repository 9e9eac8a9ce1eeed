"""What actors offer when they join."""

from kelpie.wire.consumer_protocol import Subscription, encode

METADATA: dict[str, bytes] = {
    "a": encode(Subscription(topics=["diff-a"]), 0),
    "b": encode(Subscription(topics=["diff-b"]), 3),
    "both": encode(Subscription(topics=["diff-a", "diff-b"], user_data=b"more"), 1),
    "none": encode(Subscription(topics=[]), 0),
    "newer": b"\x00\x07" + encode(Subscription(topics=["diff-a"]), 0)[2:] + b"appended",
    "broken": b"\x00\x00\x00\x00\x01",
    "cut": encode(Subscription(topics=["diff-a"]), 0)[:-4],
    "negative": b"\xff\xfe" + encode(Subscription(topics=["diff-a"]), 0)[2:],
    "empty": b"",
    "large": b"\x00\x00" + bytes(8) + b"x" * 40_000,
}

PROTOCOLS: dict[str, list[tuple[str, str]]] = {
    "range": [("range", "a")],
    "range-b": [("range", "b")],
    "range-both": [("range", "both")],
    "two": [("range", "a"), ("roundrobin", "a")],
    "two-reversed": [("roundrobin", "b"), ("range", "b")],
    "three": [("sticky", "a"), ("range", "a"), ("roundrobin", "b")],
    "sticky": [("sticky", "a")],
    "nameless": [("", "a"), ("range", "a")],
    "broken": [("range", "broken")],
    "cut": [("range", "cut")],
    "negative": [("range", "negative")],
    "newer": [("range", "newer")],
    "blank": [("range", "empty")],
    "large": [("range", "large")],
    "none": [],
}
