"""Files as Kafka's own tools read them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelpie.client import java_properties
from kelpie.client.address import Address
from kelpie.client.client_errors import BadSettings
from kelpie.client.login import parse_jaas
from kelpie.client.properties import read_settings, settings_of
from kelpie.client.security import PLAINTEXT, Protocol, Secret
from kelpie.real import properties as written

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "hunter2-never-shown"


def test_the_syntax_is_that_of_java() -> None:
    """Each of these forms is in some properties file of somebody; the Java documentation lists them."""
    text = (
        b"# a comment\n! another\n\n"
        b"a=1\nb:2\nc 3\n  d = 4 \n"
        b"e=one\\\n   two\\\n  # three\n"
        b"f\\=g=h\\:i\n"
        b"escapes=\\t\\u00e9\\ud83d\\ude00\\q\\\\\n"
        b"latin=\xe9\n"
        b"empty=\nbare\nequals==\r\nlast=x\\\n"
    )
    assert java_properties.parse(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "4 ",
        "e": "onetwo# three",
        "f=g": "h:i",
        "escapes": "\té😀q\\",
        "latin": "é",
        "empty": "",
        "bare": "",
        "equals": "=",
        "last": "x",
    }


def test_a_broken_escape_names_its_line() -> None:
    """Line numbers are what people look for first."""
    with pytest.raises(BadSettings, match=r"Line 2 of client\.properties"):
        java_properties.parse(b"a=1\nb=\\u12\n", "client.properties")


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,8}", fullmatch=True), st.text(max_size=20)))
def test_what_brokers_are_configured_with_is_read_back(values: dict[str, str]) -> None:
    """The files of real brokers in tests come from another writer: the two agree."""
    values = {key: value.strip().replace("\r", "").replace("\n", "") for key, value in values.items()}
    values = {
        key: value for key, value in values.items() if not any(0xD800 <= ord(c) < 0xE000 for c in value)
    }
    assert java_properties.parse(written.text(values).encode()) == values


def test_a_jaas_line_is_taken_apart() -> None:
    """Quotes of both kinds, escapes, words without quotes, comments: as Kafka's JaasConfig reads them."""
    login = parse_jaas(f"""{PLAIN} required // who we are
        username='a"b' password="c\\"d\\\\e;=" /* a flag */ tokenauth=true;""")
    assert login.module == "PlainLoginModule"
    assert login.options == {"username": 'a"b', "password": 'c"d\\e;=', "tokenauth": "true"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "login module"),
        (f"{PLAIN};", "required"),
        (f"{PLAIN} needed username=a;", "required"),
        (f'{PLAIN} required password="{SECRET}"', "semicolon"),
        (f'{PLAIN} required password="{SECRET};', "quotation mark"),
        (f"{PLAIN} required password {SECRET};", "option 1"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one"),
    ],
)
def test_a_wrong_jaas_line_is_explained_without_its_secrets(text: str, complaint: str) -> None:
    """The line holds passwords: the error may end up in a ticket."""
    with pytest.raises(BadSettings, match=complaint) as caught:
        parse_jaas(text)
    assert SECRET not in caught.value.reason


def test_an_empty_file_needs_an_address_only() -> None:
    """Most clusters of developers are like this."""
    settings = settings_of({}, "a:1,b:2")
    assert settings.bootstrap == (Address("a", 1), Address("b", 2))
    assert settings.security == PLAINTEXT
    assert settings.ignored == ()
    with pytest.raises(BadSettings, match=r"bootstrap\.servers"):
        settings_of({})


def test_the_command_line_wins_over_the_file_and_the_rest_is_told(tmp_path: Path) -> None:
    """Unknown keys are ignored, as Kafka does, but a person may ask which."""
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=a:1\nclient.id=ops\nrequest.timeout.ms=2500\nretries=3\nssl.keystore.location=/none\n"
    )
    assert read_settings(file).bootstrap == (Address("a", 1),)
    settings = read_settings(file, "b:2")
    assert settings.bootstrap == (Address("b", 2),)
    assert settings.client_id == "ops"
    assert settings.request_timeout_s == 2.5
    assert settings.connect_timeout_s == 2.5, "a connection takes no longer than an answer"
    # Without encryption, nobody looks at key stores.
    assert settings.ignored == ("retries", "ssl.keystore.location")


def test_no_secret_shows() -> None:
    """Settings are logged and printed; passwords must not be."""
    settings = settings_of(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} required username="ops" password="{SECRET}";',
        },
        "a:1",
    )
    assert settings.security.protocol is Protocol.SASL_PLAINTEXT
    assert settings.security.sasl is not None
    assert settings.security.sasl.password == Secret(SECRET)
    assert "ops" in repr(settings)
    assert SECRET not in repr(settings)
    assert SECRET not in f"{settings.security.sasl.password}"


def _sasl(mechanism: str, line: str, **others: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
        **{key.replace("_", "."): value for key, value in others.items()},
    }


def test_client_credentials_come_from_either_place() -> None:
    """Kafka 4.2 gave them properties of their own; before, they were options of the login module."""
    url = "https://idp.example/token"
    for properties in (
        _sasl(
            "OAUTHBEARER",
            f'{BEARER} required clientId="me" clientSecret="{SECRET}" scope="kafka" extension_pool="p1";',
            sasl_oauthbearer_token_endpoint_url=url,
        ),
        _sasl(
            "OAUTHBEARER",
            f'{BEARER} required extension_pool="p1";',
            sasl_oauthbearer_token_endpoint_url=url,
            sasl_oauthbearer_client_credentials_client_id="me",
            sasl_oauthbearer_client_credentials_client_secret=SECRET,
            sasl_oauthbearer_scope="kafka",
        ),
    ):
        settings = settings_of(properties, "a:1")
        assert settings.security.sasl is not None
        source = settings.security.sasl.token
        assert source is not None
        assert (source.endpoint, source.client_id, source.scope) == (url, "me", "kafka")
        assert source.client_secret == Secret(SECRET)
        assert source.extensions == (("pool", "p1"),)
        assert SECRET not in repr(settings)
        assert settings.ignored == ()


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"security.protocol": "TLS"}, "SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, r"sasl\.jaas\.config"),
        (_sasl("GSSAPI", f"{PLAIN} required;"), "GSSAPI is not spoken"),
        (_sasl("SCRAM-SHA-256", f'{PLAIN} required username="a" password="b";'), "ScramLoginModule"),
        (_sasl("PLAIN", f'{PLAIN} required username="a";'), "lacks password"),
        (_sasl("OAUTHBEARER", f"{BEARER} required;"), "needs a token"),
        (
            _sasl("OAUTHBEARER", f'{BEARER} required unsecuredLoginNumberClaim_x="one";'),
            "not a number",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/none.pem"}, r"/none\.pem cannot be read"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x"}, r"certificate\.chain"),
        ({"request.timeout.ms": "soon"}, r"request\.timeout\.ms"),
        (
            {"config.providers": "file", "client.id": "${file:/run/secrets:id}"},
            r"client\.id refers to a config provider",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_asked(
    properties: dict[str, str], complaint: str
) -> None:
    """Each says which key is wrong and what it should hold."""
    with pytest.raises(BadSettings, match=complaint):
        settings_of(properties, "a:1")


def test_a_file_that_is_not_there() -> None:
    """The path is the first thing to check, so it is in the message."""
    with pytest.raises(BadSettings, match=r"/none/client\.properties cannot be read"):
        read_settings("/none/client.properties")
