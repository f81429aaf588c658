"""A server of the program for tests, and requests to it."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

from support import PROGRAM, ROOT

FOLDERS = ROOT / "tests" / "model" / "folders"
TIMEOUT = 60


class Server:
    """`seqconv serve` with flags, at a port of its own; as a context manager it is ended."""

    def __init__(self, *flags, environment=None):
        command = [PROGRAM, "serve", "--port", "0", *map(str, flags)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.log, self.ports = [], {}
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.listens = threading.Event()
        self.reader.start()
        if not self.listens.wait(TIMEOUT) or "http" not in self.ports:
            self.process.kill()
            raise AssertionError(f"no server: {self.message}")
        self.port = self.ports["http"]

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"serves (metrics )?at http://\S+?:(\d+)(/|$)", line)
            if found:
                self.ports["metrics" if found[1] else "http"] = int(found[2])
                if not found[1]:
                    self.listens.set()
        self.listens.set()

    @property
    def message(self):
        return "".join(self.log)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connect(self, port=None):
        return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=TIMEOUT)

    def request(self, method, path, body=None, headers=None, port=None):
        """(status, headers, body) of a request by a connection of its own."""
        connection = self.connect(port)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, **parameters):
        """(status, answer) of a request in JSON."""
        status, _, body = self.request("POST", path, json.dumps(parameters),
                                       {"Content-Type": "application/json"})
        return status, json.loads(body)

    def exchange(self, asked):
        """(status, answer) of a request of serve_exchanges.py."""
        body, kind = asked.body, asked.type
        if asked.json is not None:
            body, kind = json.dumps(asked.json), "application/json"
        elif asked.form:
            body, kind = urllib.parse.urlencode(asked.form), "application/x-www-form-urlencoded"
        path = asked.path + ("?" + urllib.parse.urlencode(asked.query) if asked.query else "")
        headers = dict(asked.headers)
        if kind:
            headers["Content-Type"] = kind
        status, _, answer = self.request(asked.method, path, body, headers)
        return status, json.loads(answer)

    def resident_bytes(self):
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    def end(self, number=signal.SIGTERM):
        """The exit code after a signal."""
        self.process.send_signal(number)
        code = self.process.wait(TIMEOUT)
        self.reader.join(TIMEOUT)
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.reader.join(TIMEOUT)
        self.process.stderr.close()
        if kind is not None:
            print(self.message, file=sys.stderr)


def events(body):
    """(name, data) of server-sent events."""
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", body.decode())
    return [(name, json.loads(data)) for name, data in found]


def wait_until(is_true, seconds=20):
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
