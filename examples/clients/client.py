"""Reconnects for each request: client.py URL CA VISITS CONCURRENT default|resume"""

import http.client
import ssl
import sys
import threading
from urllib.parse import urlsplit


class ResumingConnection(http.client.HTTPSConnection):
    """Python never resumes automatically: it exposes the session, and accepts it for the next connection."""

    sessions = {}

    def connect(self):
        http.client.HTTPConnection.connect(self)
        session = self.sessions.get((self.host, self.port))
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host, session=session)

    def keep_session(self):
        # TLS 1.3 tickets arrive with the response, so call this after reading it.
        self.sessions[(self.host, self.port)] = self.sock.session


def get(url, context, resume):
    kind = ResumingConnection if resume else http.client.HTTPSConnection
    connection = kind(url.hostname, url.port, context=context)
    connection.request("GET", url.path)
    connection.getresponse().read()
    if resume:
        connection.keep_session()
    connection.close()


def main():
    url, ca, visits, concurrent, resume = sys.argv[1:6]
    url, resume = urlsplit(url), resume == "resume"
    # One context for all: a session is valid only for the context that created it.
    context = ssl.create_default_context(cafile=ca)
    for _ in range(int(visits)):
        get(url, context, resume)
    threads = [threading.Thread(target=get, args=(url, context, resume)) for _ in range(int(concurrent))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
