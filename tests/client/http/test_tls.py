"""HTTPS with the certificate of an authority of one's own: it is verified, and can be trusted."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raxol_sync import Client, ConnectFailed, Server
from raxol_sync.client.means import AUTHORITIES
from tests.client.http.hostile import Conn, Seen

CERTIFICATE = Path(__file__).parents[2] / "server" / "web" / "localhost.pem"
REHASHED = "ce275665.0"  # its name in a folder; as `openssl x509 -subject_hash` says
OTHER = Path(__file__).with_name("tls.pem")


@contextmanager
def serving(certificate: Path | None) -> Iterator[int]:
    """A server that has signed its certificate itself; its port."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    server = Server("in house")

    @server.tool
    def shout(text: str) -> str:
        return text.upper()

    with (
        server,
        server.start_http(port=0, require_authorization=False, ssl_context=context) as http,
    ):
        yield http.port


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server with a certificate for `localhost`."""
    with serving(CERTIFICATE) as found:
        yield found


def shouted(port: int) -> str:
    """What a tool of the server answers."""
    url = f"https://localhost:{port}/mcp"
    with Client("c", url=url, fail_fast=True, init_timeout=20) as client:
        return client.call_tool("shout", {"text": "hi"}).text


@pytest.mark.parametrize("name", AUTHORITIES)
def test_c23_a_variable_names_whom_to_trust(
    port: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `requests`: a file with certificates."""
    monkeypatch.setenv(name, str(CERTIFICATE))
    assert shouted(port) == "HI"


def test_c23_a_folder_names_whom_to_trust(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that `openssl rehash` has made."""
    (tmp_path / REHASHED).write_bytes(CERTIFICATE.read_bytes())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path))
    assert shouted(port) == "HI"


def test_c23_an_unknown_authority_is_refused(port: int) -> None:
    """And the error names the variable that would help."""
    with pytest.raises(ConnectFailed, match=r"not valid: self.signed.*; REQUESTS_CA_BUNDLE may"):
        shouted(port)


def test_c23_the_first_that_is_set_counts(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one is not set; one that names others does not vouch."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")
    monkeypatch.setenv("CURL_CA_BUNDLE", str(OTHER))
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with pytest.raises(ConnectFailed, match="that CURL_CA_BUNDLE names do not vouch for it"):
        shouted(port)


def test_c23_a_host_of_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust in an authority is no end of verification."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(OTHER))
    with (
        serving(OTHER) as port,
        pytest.raises(ConnectFailed, match="not valid: Hostname mismatch"),
    ):
        shouted(port)


@pytest.mark.parametrize("value", ["nowhere.pem", "0", "False", __file__])
def test_c23_what_holds_no_certificates_is_told(
    port: int, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value switches verification off."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", value)
    wrong = "holds no certificate" if value == __file__ else "cannot be read: no such file"
    with pytest.raises(ConnectFailed, match=f"REQUESTS_CA_BUNDLE in the environment .* {wrong}"):
        shouted(port)


def test_c23_https_where_plain_http_is_spoken() -> None:
    """It asks whether the scheme is right."""
    with serving(None) as port, pytest.raises(ConnectFailed, match=r"TLS: .*is it http://\?"):
        shouted(port)


def test_c11_a_page_instead_of_an_answer(connect: Callable[..., Client]) -> None:
    """It says what came, and that the URL may be wrong."""

    def page(seen: Seen, conn: Conn) -> None:
        conn.reply(200, b"<html></html>", {"Content-Type": "text/html; charset=utf-8"})

    client = connect(page)
    client.start()
    with pytest.raises(ConnectFailed, match="stream but text/html: check url=, which is http://"):
        client.await_ready()
