"""Every way into real Kafka 4.3.1, and every way to be refused: with a clear word, and without hanging."""

import asyncio
import hashlib
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from kelpie.client.address import Address
from kelpie.client.client_errors import BadSettings, ClientError, Closed, NotAuthenticated, TlsFailed
from kelpie.client.connection import Connection
from kelpie.client.nodes import Nodes
from kelpie.client.opening import open_connection
from kelpie.client.properties import settings_of
from kelpie.client.settings import Settings
from kelpie.client.survey import survey, unreachable
from kelpie.client.tls import explain
from kelpie.client.versions import BrokerVersions
from kelpie.errors import ErrorCode
from kelpie.observations import Trouble
from kelpie.real.cluster import RealCluster
from kelpie.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kelpie.wire.api.api_versions import ApiVersionsResponse
from kelpie.wire.api.metadata import MetadataRequest
from tests.client.certificates import authority, signed

PASSWORD = 'sécret=,"ª\\'
"""It would not survive SASLprep, which Kafka does not do, nor careless quoting."""
TOKEN_USER = "alice"
_PACKAGE = "org.apache.kafka.common.security"
SASL_LISTENERS = ("sasl_plaintext", "sasl_ssl")

pytestmark = pytest.mark.real


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("security")


@pytest.fixture(scope="module")
def cluster(available: Callable[[], AbstractContextManager[None]], folder: Path) -> Iterator[RealCluster]:
    """One broker: SASL with and without encryption, and TLS that wants a certificate of the client, too."""
    server = signed("broker", "localhost")
    (folder / "server.pem").write_bytes(server.key_pem() + server.certificate_pem)
    (folder / "ca.pem").write_bytes(authority().certificate_pem)
    config: dict[str, object] = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
        "listener.name.ssl.ssl.client.auth": "required",
        "connections.max.reauth.ms": 600_000,
    }
    plain = f"{_PACKAGE}.plain.PlainLoginModule required user_alice={_quoted(PASSWORD)};"
    scram = f"{_PACKAGE}.scram.ScramLoginModule required;"
    bearer = f'{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    for listener in SASL_LISTENERS:
        prefix = f"listener.name.{listener}"
        config[f"{prefix}.plain.sasl.jaas.config"] = plain
        config[f"{prefix}.scram-sha-256.sasl.jaas.config"] = scram
        config[f"{prefix}.scram-sha-512.sasl.jaas.config"] = scram
        config[f"{prefix}.oauthbearer.sasl.jaas.config"] = bearer
    config["listener.name.sasl_ssl.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256"
    with (
        available(),
        RealCluster("4.3.1", config=config, listeners=("SASL_PLAINTEXT", "SSL", "SASL_SSL")) as cluster,
    ):
        asyncio.run(_add_scram_users(cluster))
        yield cluster


async def _add_scram_users(cluster: RealCluster) -> None:
    salt = b"0123456789abcdef"
    upsertions = [
        ScramCredentialUpsertion(
            name="alice,=x",
            mechanism=mechanism,
            iterations=4096,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), salt, 4096),
        )
        for mechanism, digest in ((1, "sha256"), (2, "sha512"))
    ]
    async with await Nodes.open(Settings.of(cluster.bootstrap_servers)) as nodes:
        for upsertion in upsertions:
            request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
            response = await nodes.ask_any(request)
            assert [result.error_code for result in response.results] == [ErrorCode.NONE]


def _login(mechanism: str, user: str = "alice", password: str = PASSWORD) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_PACKAGE}.{module} required username={_quoted(user)} "
        f"password={_quoted(password)};",
    }


def _bearer(*options: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required {' '.join(options)};",
    }


def _encrypted(login: dict[str, str], folder: Path, **others: str) -> dict[str, str]:
    protocol = "SASL_SSL" if "sasl.mechanism" in login else "SSL"
    tls = {"security.protocol": protocol, "ssl.truststore.location": str(folder / "ca.pem")}
    return login | tls | {key.replace("_", "."): value for key, value in others.items()}


def _localhost(addresses: str) -> Address:
    """The broker's certificate is made out to localhost."""
    return Address("localhost", Address.parse(addresses).port)


def _enter(properties: dict[str, str], address: Address | str) -> Connection:
    """Opens a connection and asks what only those may who were let in."""

    async def enter() -> Connection:
        where = Address.parse(address) if isinstance(address, str) else address
        settings = settings_of(properties, str(where))
        async with await open_connection(where, settings) as connection:
            response = await connection.ask(MetadataRequest(topics=[]))
            assert [broker.node_id for broker in response.brokers] == [1]
            return connection

    return asyncio.run(enter())


def _refused(kind: type[ClientError], properties: dict[str, str], address: Address | str) -> str:
    with pytest.raises(kind) as caught:
        _enter(properties, address)
    reason = caught.value.reason
    assert PASSWORD not in reason
    assert PASSWORD not in repr(caught.value)
    where = str(address)
    assert where in reason, f"{reason!r} does not name {where}"
    return reason


@pytest.mark.parametrize(
    ("code", "trouble"),
    [
        (10, Trouble.CERTIFICATE_EXPIRED),
        (62, Trouble.CERTIFICATE_NAME),
        (64, Trouble.CERTIFICATE_NAME),
        (19, Trouble.CERTIFICATE_UNTRUSTED),
    ],
)
def test_what_is_wrong_with_a_certificate_is_told_apart(code: int, trouble: Trouble) -> None:
    """By OpenSSL's codes: the doctor gives each its own advice."""
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code, error.verify_message = code, "as OpenSSL says it"
    failure = explain(error, Address("kafka-1", 9093))
    assert failure is not None
    assert failure.trouble is trouble


def test_a_password_opens_the_door(cluster: RealCluster) -> None:
    """PLAIN as Kafka's tools are configured for it, with a password full of signs that need quoting."""
    connection = _enter(_login("PLAIN"), cluster.addresses("SASL_PLAINTEXT"))
    assert connection.session_ends is not None, "the broker's limit for sessions was not noticed"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_proves_the_password_without_sending_it(cluster: RealCluster, mechanism: str) -> None:
    """RFC 5802 against Kafka's own implementation, with a user name that needs escaping."""
    _enter(_login(mechanism, user="alice,=x"), cluster.addresses("SASL_PLAINTEXT"))


def test_an_unsigned_token_is_made_as_kafkas_login_module_makes_it(cluster: RealCluster) -> None:
    """OAUTHBEARER out of the box: the broker checks issue time, end and principal of the unsecured token."""
    options = ('unsecuredLoginStringClaim_sub="alice"', 'unsecuredLoginListClaim_scope="|a|b"')
    _enter(_bearer(*options), cluster.addresses("SASL_PLAINTEXT"))


def test_a_token_from_a_file_is_used(cluster: RealCluster, folder: Path) -> None:
    """A file: address is how Kafka's tools take a token that something else keeps fresh."""
    # {"alg":"none"} and {"sub":"alice","iat":1,"exp":99999999999}
    (folder / "token").write_text(
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImlhdCI6MSwiZXhwIjo5OTk5OTk5OTk5OX0.\n"
    )
    properties = _bearer() | {"sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri()}
    _enter(properties, cluster.addresses("SASL_PLAINTEXT"))


def test_encryption_and_password_together(cluster: RealCluster, folder: Path) -> None:
    """SASL_SSL is what most secured clusters use."""
    _enter(_encrypted(_login("PLAIN"), folder), _localhost(cluster.addresses("SASL_SSL")))


def test_a_trust_store_made_by_keytool_is_read(cluster: RealCluster, folder: Path) -> None:
    """PKCS12 with trusted certificates only is Java's invention; its name often ends in .jks all the same."""
    keytool = shutil.which("keytool") or pytest.skip("keytool of a JDK is not on the path")
    store = folder / "trust-store.jks"
    command = [keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", str(folder / "ca.pem")]
    command += ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    others = {"ssl_truststore_location": str(store), "ssl_truststore_password": "changeit"}
    properties = _encrypted(_login("PLAIN"), folder, ssl_truststore_type="JKS", **others)
    _enter(properties, _localhost(cluster.addresses("SASL_SSL")))
    with pytest.raises(BadSettings, match=r"ssl\.truststore\.password"):
        settings_of(properties | {"ssl.truststore.password": "wrong"}, "localhost:1")


def test_a_client_certificate_is_shown_from_pem_and_from_pkcs12(cluster: RealCluster, folder: Path) -> None:
    """Key stores come as PEM, with or without a password on the key, and as PKCS12."""
    client = signed("client")
    (folder / "client.pem").write_bytes(client.key_pem("key-password") + client.certificate_pem)
    store = pkcs12.serialize_key_and_certificates(
        b"client",
        client.key,
        client.certificate,
        [authority().certificate],
        BestAvailableEncryption(b"store"),
    )
    (folder / "client.p12").write_bytes(store)
    address = _localhost(cluster.addresses("SSL"))
    pem = {"ssl_keystore_location": str(folder / "client.pem"), "ssl_key_password": "key-password"}
    _enter(_encrypted({}, folder, **pem), address)
    p12 = {"ssl_keystore_location": str(folder / "client.p12"), "ssl_keystore_password": "store"}
    _enter(_encrypted({}, folder, **p12), address)
    inline = {
        "ssl_keystore_key": client.key_pem().decode().replace("\n", " "),
        "ssl_keystore_certificate_chain": client.certificate_pem.decode(),
    }
    _enter(_encrypted({}, folder, **inline), address)


def test_a_wrong_password_is_named_as_such(cluster: RealCluster) -> None:
    """The reason names the user and the mechanism, and never the password."""
    address = cluster.addresses("SASL_PLAINTEXT")
    for mechanism, user in (("PLAIN", "alice"), ("SCRAM-SHA-256", "alice,=x"), ("SCRAM-SHA-512", "nobody")):
        reason = _refused(NotAuthenticated, _login(mechanism, user, "wrong-password"), address)
        assert repr(user) in reason
        assert mechanism in reason
        assert "wrong-password" not in reason


def test_a_token_past_its_end_is_refused_with_the_brokers_words(cluster: RealCluster) -> None:
    """The broker's JSON says what is wrong with the token; the exchange still ends in good order."""
    # {"sub":"alice","iat":1,"exp":2}
    token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImlhdCI6MSwiZXhwIjoyfQ."
    reason = _refused(NotAuthenticated, _bearer(f'token="{token}"'), cluster.addresses("SASL_PLAINTEXT"))
    assert "invalid_token" in reason
    assert token not in reason


def test_a_mechanism_that_is_not_offered(cluster: RealCluster, folder: Path) -> None:
    """The reason lists what the broker offers."""
    properties = _encrypted(_login("SCRAM-SHA-512"), folder)
    reason = _refused(NotAuthenticated, properties, _localhost(cluster.addresses("SASL_SSL")))
    assert "PLAIN, SCRAM-SHA-256" in reason or "SCRAM-SHA-256, PLAIN" in reason


def test_credentials_at_a_listener_that_wants_none(cluster: RealCluster) -> None:
    """A port mixed up: the broker's plain listener knows no SASL at all."""
    reason = _refused(NotAuthenticated, _login("PLAIN"), cluster.bootstrap_servers)
    assert "security.protocol to PLAINTEXT" in reason


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_logins_of_before_kafka_1_0_go_in_bare_frames(
    cluster: RealCluster, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """A broker that offers SaslHandshake v0 only. Brokers of today still know that way, and so judge it."""
    told_by = BrokerVersions.told_by

    def as_in_0_10(response: ApiVersionsResponse, broker: str) -> BrokerVersions:
        told = told_by(response, broker)
        return replace(told, ranges={**told.ranges, 17: (0, 0)})

    monkeypatch.setattr(BrokerVersions, "told_by", as_in_0_10)
    user = "alice" if mechanism == "PLAIN" else "alice,=x"
    address = cluster.addresses("SASL_PLAINTEXT")
    connection = _enter(_login(mechanism, user), address)
    assert "SaslAuthenticate" not in connection.counters.by_api
    reason = _refused(NotAuthenticated, _login(mechanism, user, "wrong-password"), address)
    assert "closed the connection" in reason


def test_no_credentials_at_a_listener_that_wants_some(cluster: RealCluster) -> None:
    """The broker just closes; the reason must say what it may have wanted."""
    reason = _refused(Closed, {}, cluster.addresses("SASL_PLAINTEXT"))
    assert "SASL" in reason


def test_a_certificate_of_somebody_else_is_not_trusted(cluster: RealCluster, folder: Path) -> None:
    """The wrong authority in the trust store."""
    (folder / "other.pem").write_bytes(authority("Somebody Else").certificate_pem)
    properties = _encrypted(_login("PLAIN"), folder, ssl_truststore_location=str(folder / "other.pem"))
    reason = _refused(TlsFailed, properties, _localhost(cluster.addresses("SASL_SSL")))
    assert "ssl.truststore.location" in reason


def test_a_certificate_made_out_to_another_name(cluster: RealCluster, folder: Path) -> None:
    """127.0.0.1 is not in the certificate; an empty identification algorithm leaves the name unchecked."""
    address = cluster.addresses("SASL_SSL")
    reason = _refused(TlsFailed, _encrypted(_login("PLAIN"), folder), address)
    assert "ssl.endpoint.identification.algorithm" in reason
    _enter(_encrypted(_login("PLAIN"), folder, ssl_endpoint_identification_algorithm=""), address)


def test_no_certificate_where_one_is_wanted(cluster: RealCluster, folder: Path) -> None:
    """With TLS 1.3 the refusal comes after the handshake, on the first read."""
    reason = _refused(TlsFailed, _encrypted({}, folder), _localhost(cluster.addresses("SSL")))
    assert "ssl.keystore.location" in reason


def test_plain_talk_to_an_encrypted_listener(cluster: RealCluster) -> None:
    """The most common mistake of all: the port of the TLS listener, and no security.protocol."""
    reason = _refused(Closed, {}, cluster.addresses("SASL_SSL"))
    assert "TLS" in reason
    assert "security.protocol" in reason


def test_encrypted_talk_to_a_plain_listener(cluster: RealCluster, folder: Path) -> None:
    """The other way round."""
    reason = _refused(TlsFailed, _encrypted({}, folder), _localhost(cluster.bootstrap_servers))
    assert "security.protocol" in reason


def test_a_java_key_store_comes_with_the_command_that_converts_it(folder: Path) -> None:
    """JKS is Java's own format."""
    store = folder / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    with pytest.raises(BadSettings, match="keytool -importkeystore") as caught:
        settings_of(_encrypted({}, folder, ssl_truststore_location=str(store)), "localhost:1")
    assert str(folder / "trust.p12") in caught.value.reason


def test_a_survey_over_tls_tells_until_when_certificates_are_valid(
    cluster: RealCluster, folder: Path
) -> None:
    """The broker's own, the authority's that signed it, and that with which we connect."""
    client = signed("client")
    (folder / "own.pem").write_bytes(client.key_pem() + client.certificate_pem)
    address = _localhost(cluster.addresses("SSL"))
    properties = _encrypted({}, folder, ssl_keystore_location=str(folder / "own.pem"))
    settings = settings_of(properties | {"ssl.endpoint.identification.algorithm": ""}, str(address))
    seen = asyncio.run(survey(settings))
    ends = {row.holder: (row.subject, row.not_after // 1000) for row in seen.certificates}
    assert ends == {
        holder: (f"CN={name}", int(identity.certificate.not_valid_after_utc.timestamp()))
        for holder, name, identity in (
            ("broker", "broker", signed("broker", "localhost")),
            ("authority", "Test Authority", authority()),
            ("client", "client", client),
        )
    }
    assert {row.node for row in seen.certificates} == {seen.brokers[0].node_id, -1}
    assert unreachable(ClientError("no"), security=settings.security).certificates[0].subject == "CN=client"
