"""TLS: from certificates to a context, and from OpenSSL's errors to plain words."""

import ssl

from kelpie.client.address import Address
from kelpie.client.client_errors import BadSettings, ClientError, TlsFailed
from kelpie.client.key_file import key_file
from kelpie.client.memory import Memory
from kelpie.client.security import Security, Tls
from kelpie.client.tls_offer import restrict
from kelpie.observations import Trouble

_HOST_MISMATCH = 62
_IP_MISMATCH = 64
_EXPIRED = 10
_NOT_YET_VALID = 9

_NOT_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
_WANTS_CERTIFICATE = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_HANDSHAKE_FAILURE",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "TLSV1_ALERT_UNKNOWN_CA",
}


def context_for(security: Security, memory: Memory) -> ssl.SSLContext | None:
    """One context serves all connections to a cluster: reading the system's authorities takes its time."""
    if not security.protocol.encrypted:
        return None
    if memory.tls is None:
        memory.tls = make_context(security.tls or Tls())
    return memory.tls


def make_context(tls: Tls) -> ssl.SSLContext:
    """Raises BadSettings where certificates or keys cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_host
    # As in Java, every certificate of the trust store is trusted by itself, also one that another has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.authorities is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=tls.authorities.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise BadSettings(f"The trusted certificates cannot be read as PEM: {_said(error)}.") from None
    restrict(context, tls.versions, tls.ciphers)
    if tls.certificates is not None:
        _load_own(context, tls)
    return context


def _load_own(context: ssl.SSLContext, tls: Tls) -> None:
    password = tls.key_password.reveal() if tls.key_password is not None else ""
    try:
        with key_file(tls.key or b"", tls.certificates or b"", password) as (path, opens_with):
            context.load_cert_chain(path, password=opens_with)
    except (ssl.SSLError, ValueError, TypeError) as error:
        said = _said(error) if isinstance(error, ssl.SSLError) else str(error)
        raise BadSettings(
            f"The client's own certificate and key cannot be used: {said}. Is ssl.key.password "
            "right, and do key and certificate belong together?"
        ) from None


def explain(error: Exception, address: Address) -> ClientError | None:
    """What a failed handshake means, if it is about TLS at all."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(_distrust(error, address), address, trouble=_kind(error))
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        if reason in _NOT_TLS:
            return TlsFailed(
                f"{address} does not speak TLS: it is a listener without encryption, or not Kafka's. Set "
                "security.protocol to PLAINTEXT or SASL_PLAINTEXT, or take the port of the encrypted "
                "listener.",
                address,
            )
        if reason in _WANTS_CERTIFICATE:
            return TlsFailed(
                f"{address} did not accept our certificate, or wants one and got none ({_said(error)}). Set "
                "ssl.keystore.location to a certificate that the broker trusts.",
                address,
            )
        if isinstance(error, ssl.SSLEOFError):
            return broken_off(address)
        return TlsFailed(f"No encrypted connection to {address} came about: {_said(error)}.", address)
    return None


def broken_off(address: Address) -> TlsFailed:
    return TlsFailed(
        f"{address} ended the connection while it was being encrypted: a listener without TLS does so "
        "(security.protocol=PLAINTEXT or SASL_PLAINTEXT), and one that wants another version of TLS.",
        address,
    )


def _distrust(error: ssl.SSLCertVerificationError, address: Address) -> str:
    if error.verify_code in (_HOST_MISMATCH, _IP_MISMATCH):
        return (
            f"The certificate of {address} is made out to other names than {address.host}. Connect by a "
            "name that is in it, or set ssl.endpoint.identification.algorithm to nothing, which leaves the "
            "name unchecked."
        )
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return f"The certificate of {address} is out of date: {error.verify_message}."
    return (
        f"The certificate of {address} is not signed by anyone we trust ({error.verify_message}). Set "
        "ssl.truststore.location to the certificate of the authority that signed it."
    )


def _kind(error: ssl.SSLCertVerificationError) -> Trouble:
    if error.verify_code in (_HOST_MISMATCH, _IP_MISMATCH):
        return Trouble.CERTIFICATE_NAME
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return Trouble.CERTIFICATE_EXPIRED
    return Trouble.CERTIFICATE_UNTRUSTED


def _said(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
