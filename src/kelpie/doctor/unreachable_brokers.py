"""Why a broker cannot be asked, in words, and what to do: by the kind of trouble."""

from kelpie.doctor.finding import Remedy
from kelpie.model.quoting import quoted
from kelpie.observations import BrokerView, Trouble

_WORDS = {
    Trouble.REFUSED: "connecting from here failed: connection refused",
    Trouble.NO_ANSWER: "connecting from here failed: no connection in time",
    Trouble.UNKNOWN_NAME: "connecting from here failed: its name cannot be looked up",
    Trouble.SLOW: "it cannot be used from here: it takes the connection and does not answer in time",
    Trouble.CERTIFICATE_EXPIRED: "it cannot be used from here: its TLS certificate is out of date",
    Trouble.CERTIFICATE_NAME: "it cannot be used from here: its TLS certificate is made out to other names",
    Trouble.CERTIFICATE_UNTRUSTED: "it cannot be used from here: its TLS certificate is signed by no "
    "authority that is trusted here",
    Trouble.TLS: "it cannot be used from here: no encrypted connection comes about",
    Trouble.LOGIN: "it cannot be used from here: it refused the login",
}
_ANSWERS = frozenset(
    {
        Trouble.SLOW,
        Trouble.CERTIFICATE_EXPIRED,
        Trouble.CERTIFICATE_NAME,
        Trouble.CERTIFICATE_UNTRUSTED,
        Trouble.TLS,
        Trouble.LOGIN,
    }
)


def trouble_of(broker: BrokerView) -> Trouble:
    """The kind. Where rows have none, the words may tell."""
    try:
        return Trouble(broker.trouble)
    except ValueError:
        pass
    if "looked up" in broker.reason:
        return Trouble.UNKNOWN_NAME
    return Trouble.REFUSED if "refused the connection" in broker.reason else Trouble.OTHER


def is_there(broker: BrokerView) -> bool:
    """Whether something at its address took the connection: then it is no matter of the network."""
    return trouble_of(broker) in _ANSWERS


def trouble_words(broker: BrokerView) -> str:
    return _WORDS.get(trouble_of(broker), "connecting from here failed")


def show_certificate(address: str, *options: str) -> str:
    """A command that shows what is in the certificate of a broker. Kafka has no tool for it."""
    shown = f"openssl s_client -connect {quoted(address)} </dev/null | openssl x509 -noout"
    return " ".join((shown, *options))


def trouble_remedy(broker: BrokerView) -> Remedy:
    """The first thing to do."""
    host = quoted(broker.host)
    match trouble_of(broker):
        case Trouble.CERTIFICATE_EXPIRED:
            text = (
                "Renew its certificate, and those of other brokers that were made on the same day. See until "
                "when it is valid:"
            )
            return Remedy(text, show_certificate(broker.address, "-dates"))
        case Trouble.CERTIFICATE_NAME:
            text = (
                f"Give it a certificate with the name {broker.host}, or advertise a name that is in it "
                "(advertised.listeners). See which names are in it:"
            )
            return Remedy(text, show_certificate(broker.address, "-ext", "subjectAltName"))
        case Trouble.CERTIFICATE_UNTRUSTED:
            text = (
                "Trust the authority that signed it (ssl.truststore.location) if it is yours; a broker with "
                "another authority than the rest was set up differently. See who signed it:"
            )
            return Remedy(text, show_certificate(broker.address, "-issuer"))
        case Trouble.TLS:
            return Remedy(
                "Compare its listeners and ssl settings with those of a broker that answers: TLS on or off, "
                "versions, whether it wants a certificate of the client (ssl.client.auth)."
            )
        case Trouble.LOGIN:
            return Remedy(
                "Other brokers take this login: compare sasl.enabled.mechanisms and credentials of this one "
                "with theirs. SCRAM credentials reach every broker through the controller, JAAS files do not."
            )
        case Trouble.SLOW:
            return Remedy(
                "See what keeps it busy or stopped: its log, garbage collection, full disks, request queue "
                "(RequestQueueSize, RequestHandlerAvgIdlePercent). A longer --timeout shows if it answers."
            )
        case Trouble.UNKNOWN_NAME:
            text = (
                f"Its name {broker.host} is not known here: is it one of a container network? Set "
                "advertised.listeners to a name that consumers can look up; restart it."
            )
            return Remedy(text, f"getent hosts {host}")
        case Trouble.REFUSED:
            text = (
                "Nothing listens there: start it if it is down; else it advertises another port than the one "
                "that it listens on (advertised.listeners)."
            )
            return Remedy(text, f"nc -vz {host} {broker.port}")
    text = (
        "See from the consumer's host whether anything listens there: a firewall, another port, a broker "
        "that hangs?"
    )
    return Remedy(text, f"nc -vz {host} {broker.port}")
