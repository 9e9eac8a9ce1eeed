"""Elements of SVG. A library writes them as text, so that every name is escaped."""

from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from kelpie.model.quoting import harmless


def picture(width: int, height: int, kind: str, title: str = "") -> Element:
    """With a title, a screen reader says it; without one, the page says in words what the picture shows."""
    root = Element("svg", {"viewBox": f"0 0 {width} {height}", "class": kind})
    if title:
        root.set("role", "img")
        root.set("aria-label", harmless(title))
    else:
        root.set("aria-hidden", "true")
    return root


def add(parent: Element, name: str, kind: str = "", **attributes: float | str) -> Element:
    """Underscores in names of attributes are hyphens."""
    given = {key.strip("_").replace("_", "-"): _text(value) for key, value in attributes.items()}
    return SubElement(parent, name, {**({"class": kind} if kind else {}), **given})


def text(parent: Element, at: tuple[float, float], words: str, kind: str = "") -> Element:
    element = add(parent, "text", kind, x=at[0], y=at[1])
    element.text = harmless(words)
    return element


def written(root: Element) -> Markup:
    return Markup(tostring(root, encoding="unicode", short_empty_elements=False))  # noqa: S704 - it is escaped.


def place(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.1f}".removesuffix(".0")


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else place(value)
