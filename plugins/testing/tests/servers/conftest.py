from __future__ import annotations

import contextlib
import http.client
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from ropewalk_testing.servers import frames


@dataclass
class Reply:
    status: int
    headers: dict
    data: bytes

    @property
    def json(self):
        return json.loads(self.data)

    @property
    def events(self):
        """Bedrock's frames, by name."""
        found = []
        for headers, payload in frames(self.data):
            name = headers.get(":event-type") or headers.get(":exception-type") or headers[":error-code"]
            found.append((name, json.loads(payload) if payload else headers[":error-message"]))

        return found

    @property
    def chunks(self):
        """OpenAI's events; the last as it is."""
        lines = [line.removeprefix(b"data: ") for line in self.data.split(b"\n\n") if line]
        return [json.loads(line) if line.startswith(b"{") else line.decode() for line in lines]


class Client:
    """One connection to a server; `post` reads all there is, also if the line was cut."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def open(self, path, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body)
        self.connection.request("POST", path, data, headers or {})
        return self.connection.getresponse()

    def post(self, path, body=None, headers=None):
        response = self.open(path, {} if body is None else body, headers)
        try:
            data = response.read()
        except http.client.IncompleteRead as error:
            return Reply(0, {}, error.partial)

        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, data)

    def get(self, path):
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        return Reply(response.status, {}, response.read())


@pytest.fixture
def connect():
    """Makes clients that are closed at the test's end."""
    with contextlib.ExitStack() as stack:

        def make(server):
            client = Client(server.url)
            stack.callback(client.connection.close)
            return client

        yield make
