#!/usr/bin/env python3
"""Runs `seqconv serve` behind nginx as docs/serving.md shows it, and asks through TLS.

    python3 tools/check_nginx.py [--model DIR] [--text SENTENCE]

Takes the example out of the document, gives it free ports and a certificate of its own, lets
nginx check it, and tries a translation, a stream whose events come one by one, a client that
leaves, a body over the limit, and hosts that are and are not allowed. Needs nginx, openssl and a
build (SEQCONV_BINARY_DIR, build/release).
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, os.fspath(ROOT / "tests" / "cli"))
from serve_support import FOLDERS, Server, events, wait_until  # noqa: E402

NAME = "translate.example.org"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CONFIG = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    {server}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def example(folder, port, upstream):
    """The document's server, with ports and a certificate that are there."""
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    server = re.search(r"```nginx\n(.*?)```", text, re.DOTALL)[1]
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        f"/etc/ssl/certs/{NAME}.pem": f"{folder}/certificate.pem",
        f"/etc/ssl/private/{NAME}.key": f"{folder}/key.pem",
        "http://127.0.0.1:5000": f"http://127.0.0.1:{upstream}",
    }.items():
        assert server.count(old) == 1, f"{old} is not in docs/serving.md"
        server = server.replace(old, new)
    return server


class Nginx:
    """nginx with the example, while it is a context."""

    def __init__(self, folder, upstream):
        self.folder, self.port = folder, free_port()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", folder / "key.pem",
             "-out", folder / "certificate.pem"], check=True, capture_output=True)  # fmt: skip
        (folder / "nginx.conf").write_text(CONFIG.format(server=example(folder, self.port, upstream)))
        self.command = [NGINX, "-p", folder, "-c", "nginx.conf", "-e", "error.log"]
        subprocess.run([*self.command, "-q", "-t"], check=True)
        self.tls = ssl.create_default_context(cafile=folder / "certificate.pem")

    def __enter__(self):
        self.process = subprocess.Popen(self.command)
        assert wait_until(self.listens), (self.folder / "error.log").read_text()
        return self

    def __exit__(self, *fault):
        self.process.terminate()
        self.process.wait(20)

    def listens(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, path, body, host=NAME):
        """A connection with a request on its way."""
        connection = http.client.HTTPConnection(NAME, timeout=60)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sock = self.tls.wrap_socket(plain, server_hostname=NAME)
        connection.request("POST", path, json.dumps(body),
                           {"Host": host, "Content-Type": "application/json"})  # fmt: skip
        return connection

    def post(self, path, body, host=NAME):
        answer = self.ask(path, body, host).getresponse()
        return answer.status, answer.read()


def call(text):
    return {"q": text, "source": "de", "target": "en"}


def translated(server, text):
    status, answer = server.post("/translate", **call(text))
    assert status == 200, answer
    return answer["translatedText"]


def metric(server, name):
    """A number of the server's, 0 where it has none of the name."""
    body = server.request("GET", "/metrics", port=server.ports["metrics"])[2].decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", body, re.MULTILINE)
    return float(found[1]) if found else 0


def check_stream(server, nginx, text):
    """The first events are here before the server has ended its answer."""
    long = f"{text}\n" * 3000
    ended = 'seqconv_requests_total{route="/translate/stream",status="200"}'
    answer = nginx.ask("/translate/stream", call(long)).getresponse()
    body = answer.read1()
    assert body.startswith(b"event: part\n") and metric(server, ended) == 0, "nginx waits"
    found = events(body + answer.read())
    assert wait_until(lambda: metric(server, ended) == 1)
    names = [name for name, _ in found]
    assert names == ["part"] * 3000 + ["done"], f"{len(names)}, the last {names[-1]}"
    assert found[-1][1]["translatedText"] == translated(server, long)
    return len(found)


def check_leaving(server, nginx, text):
    """A client that leaves nginx ends its work here."""
    connection = nginx.ask("/translate/stream", call(f"{text}\n" * 3000))
    connection.getresponse().read1()
    assert metric(server, "seqconv_connections") == 1
    connection.close()
    assert wait_until(lambda: metric(server, "seqconv_connections") == 0, 2), "it stays"


def check(server, nginx, text):
    status, body = nginx.post("/translate", call(text))
    assert (status, json.loads(body)) == (200, {"translatedText": translated(server, text)}), body
    streamed = check_stream(server, nginx, text)
    check_leaving(server, nginx, text)
    large = call("a" * (2 << 20))
    assert nginx.post("/translate", large)[0] == 413
    assert nginx.post("/translate", call("a" * 1_900_000))[0] == 400  # as it has too many characters
    status, body = nginx.post("/translate", call(text), host="other.example.org")
    assert status == 403 and b"not allowed" in body, body
    print(f"nginx: a translation, a stream of {streamed} events, 413, 403")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default=FOLDERS / "translation_1")
    parser.add_argument("--text", default="dalan pelim mira.")
    options = parser.parse_args()
    flags = ["--model", f"de-en={options.model}", "--metrics-port", free_port()]
    with tempfile.TemporaryDirectory(prefix="seqconv-nginx-") as name:
        folder = pathlib.Path(name)
        with Server(*flags, "--allowed-host", NAME) as server, Nginx(folder, server.port) as nginx:
            check(server, nginx, options.text)
        with Server(*flags) as server, Nginx(folder, server.port) as nginx:
            assert nginx.post("/translate", call(options.text))[0] == 403, "any host is allowed"


if __name__ == "__main__":
    sys.exit(main())
