"""How often a test asks whether what it waits for has come true."""


def pause_s(asking_s: float) -> float:
    """Before the next question, after one that took so long: to ask also takes from what is waited for."""
    return max(0.02, asking_s, min(3 * asking_s, 0.5))
