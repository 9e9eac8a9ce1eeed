"""KLP603 certificate-expires

What it sees: a TLS certificate that ends within days: of a broker, of the authority
that signed it, or the client certificate with which the doctor itself connects.

Why it matters: from that moment on no client can connect over TLS. Connections that
exist go on, so trouble comes with the next restart, deployment or rebalance, at
night if need be, and all groups have it at once.

How it decides: brokers show their certificate whenever a connection is encrypted. It
is a notice within 30 days of the end, or within a quarter of the certificate's whole
time if that is less; a warning within 7 days, or a tenth. So certificates that live
for a day or for 90 days and are renewed by themselves are not told before their
renewal is late. The authority counts if its certificate is in the trust store of
--command-config (ssl.truststore.location), the client certificate if one is in the
key store. A broker whose certificate has ended cannot be asked: KLP105.

What it needs: a look over TLS (security.protocol=SSL or SASL_SSL). Where brokers have
a listener with TLS and the look was over one without, it is undetermined; without
any sign of TLS it says nothing.

What to do: renew the certificate before it ends. Key stores are read when a broker
starts; since 1.1 they can be changed without a restart (kafka-configs, setting
listener.name.NAME.ssl.keystore.location). An authority is renewed first on
the side that trusts: add the new one to all trust stores, then sign with it.

When it is wrong: a renewed certificate lies ready and is taken at the next start.
Certificates of other listeners, of consumers and of intermediate authorities are not
seen. Passwords, tokens and SCRAM credentials do not show until when they are valid.

Reproduce: openssl req -x509 -newkey rsa:2048 -nodes -days 3 -subj /CN=localhost -keyout key.pem -out cert.pem
"""

from collections.abc import Sequence

from kelpie.cluster import ClusterView
from kelpie.doctor.case import Case
from kelpie.doctor.finding import ABSENT, Evidence, Finding, Judgement, Remedy, Severity, undetermined
from kelpie.doctor.rule import Presentation, Rule
from kelpie.doctor.unreachable_brokers import show_certificate
from kelpie.model.words import duration, moment, numbered
from kelpie.observations import Certificate
from kelpie.observations.cluster import AUTHORITY, CLIENT

_DAY_MS = 24 * 3_600_000
_SOON_MS, _SOON_PART = 30 * _DAY_MS, 1 / 4
_NOW_MS, _NOW_PART = 7 * _DAY_MS, 1 / 10
_TLS = "a look over TLS (security.protocol=SSL or SASL_SSL in --command-config)"


def judge(cluster: ClusterView, _cases: Sequence[Case]) -> Sequence[Finding] | Judgement:
    if not cluster.certificates:
        return undetermined(_TLS) if _has_tls(cluster) else ABSENT
    graded: dict[tuple[str, Severity], list[Certificate]] = {}
    for row in sorted(cluster.certificates, key=lambda row: (row.not_after, row.node)):
        severity = _grade(row, cluster.now)
        if severity is not None:
            graded.setdefault((row.holder, severity), []).append(row)
    return [_found(cluster, rows, severity) for (_, severity), rows in graded.items()] or ABSENT


def _has_tls(cluster: ClusterView) -> bool:
    """Whether a broker says that it has a listener with TLS."""
    listeners, protocols = "", ""
    for (_, name), value in cluster.settings.items():
        if name == "listeners":
            listeners += f",{value}"
        elif name == "listener.security.protocol.map":
            protocols += f",{value}"
    encrypted = {name for name, _, protocol in _pairs(protocols) if protocol.endswith("SSL")} or {
        "SSL",
        "SASL_SSL",
    }
    return any(name.strip() in encrypted for name, _, _ in _pairs(listeners))


def _pairs(text: str) -> list[tuple[str, str, str]]:
    return [part.strip().partition(":") for part in text.split(",") if part.strip()]


def _grade(row: Certificate, now: int) -> Severity | None:
    left, whole = row.not_after - now, max(row.not_after - row.not_before, 0)
    if left <= 0:
        return Severity.WARNING if row.holder == CLIENT else Severity.CRITICAL
    if left <= min(_NOW_MS, whole * _NOW_PART):
        return Severity.WARNING
    return Severity.NOTICE if left <= min(_SOON_MS, whole * _SOON_PART) else None


def _found(cluster: ClusterView, rows: Sequence[Certificate], severity: Severity) -> Finding:
    first = rows[0]
    nodes = sorted({row.node for row in rows if row.node >= 0})
    left = first.not_after - cluster.now
    when = f"in {duration(left)}" if left > 0 else f"{duration(-left)} ago"
    address = next((broker.address for node in nodes if (broker := cluster.brokers.get(node))), "")
    return RULE.finding(
        severity,
        None,
        _summary(first, nodes, left > 0, when),
        why="Connections that exist go on. Whoever connects after that is refused: consumers that restart or "
        "look for their coordinator, and brokers that connect to each other with it.",
        evidence=[
            Evidence.of(
                row,
                f"{row.holder} certificate {row.subject}: valid from {moment(row.not_before)} to "
                f"{moment(row.not_after)}",
            )
            for row in rows
        ],
        remedies=_remedies(first, address),
        cause=first.holder,
        brokers=nodes,
    )


def _summary(row: Certificate, nodes: Sequence[int], is_valid: bool, when: str) -> str:
    ends = "ends" if is_valid else "ended"
    at = f"{moment(row.not_after)} ({when})"
    begins = "From then on" if is_valid else "Since then"
    match row.holder:
        case "broker":
            whom = numbered("broker", nodes)
            several = (
                f"The first certificate of {whom}" if len(nodes) > 1 else f"The TLS certificate of {whom}"
            )
            return f"{several} {ends} at {at}. {begins} no client can connect to it over TLS."
        case "authority":
            signed = numbered("broker", nodes)
            return (
                f"The certificate of the authority {row.subject}, which signed that of {signed}, {ends} at "
                f"{at}. {begins} no client that trusts it can connect."
            )
    return (
        f"The client certificate {row.subject}, with which the doctor connects, {ends} at {at}. {begins} "
        "brokers refuse whoever uses it."
    )


def _remedies(row: Certificate, address: str) -> list[Remedy]:
    if row.holder == CLIENT:
        return [Remedy("Renew it, and that of all applications that use the same key store.")]
    if row.holder == AUTHORITY:
        return [
            Remedy(
                "Add the certificate of the new authority to the trust stores of all clients and brokers."
            ),
            Remedy("Only then sign the brokers' certificates with it, and restart the brokers one by one."),
        ]
    return [
        Remedy(
            "Renew it, and put it into the broker's key store: restart the brokers one by one, or set "
            "listener.name.NAME.ssl.keystore.location anew (kafka-configs, without a restart)."
        ),
        Remedy("See until when it is valid:", show_certificate(address, "-dates")),
    ]


RULE = Rule.of(
    __name__,
    judge_cluster=judge,
    presentation=Presentation("has a certificate that ends soon", "have certificates that end soon"),
)
