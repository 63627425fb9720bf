"""The server lets its own page in and nobody else."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from rejoint.explorer import document
from rejoint.explorer.open import open_model
from rejoint.explorer.server import REQUEST_SECONDS
from rejoint.io.atomic import FileChangedError

pytest.importorskip("starlette")


@pytest.fixture
def get(served, asia):
    """Ask the server for a path, with headers as given; returns status, headers, text."""
    kept = []
    address = urlsplit(served(document(asia, title="Asia"), keep=kept.append))

    def ask(path="/t0ken/", *, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
        named = {"Host": address.netloc} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.request(method, path, body=body, headers=named)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    ask.origin, ask.kept = f"http://{address.netloc}", kept
    return ask


def test_page_scripts_and_model_are_served(get):
    assert "<!doctype html>" in get()[2]
    assert get("/t0ken/static/main.js")[1]["Content-Type"].startswith("text/javascript")
    assert json.loads(get("/t0ken/model.json")[2])["title"] == "Asia"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/wrong/", "/t0ken/etc/passwd", "/t0ken/static//etc/passwd"),
        *("/t0ken/static/../server.py", "/t0ken/static/%2e%2e%2fserver.py"),
        "/t0ken/static/index.html",
    ],
)
def test_nothing_else_is_served(get, path):
    status, _, text = get(path)
    assert (status, text) == (404, "Not Found")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # another site's name that points here
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_requests_from_elsewhere_are_refused(get, headers):
    assert get(**headers)[0] == 403
    assert get("/t0ken/model.json", **headers)[0] == 403


def test_every_answer_has_the_policy_and_no_cookie(get):
    for status, headers, _ in (get(), get("/nowhere"), get(Host="evil.example")):
        assert status in (200, 403, 404)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Set-Cookie"] is None


def test_names_are_saved_for_the_page_only(get):
    names = json.dumps(["a"] * 8)
    post = {"method": "POST", "body": names, "Content_Type": "application/json"}
    assert get("/t0ken/class-names", **post)[0] == 403  # does not say where it comes from
    assert get("/t0ken/class-names", **post, Origin="http://evil.example")[0] == 403
    assert get.kept == []
    assert get("/t0ken/class-names", **post, Origin=get.origin)[0] == 200
    assert get.kept == [["a"] * 8]
    assert json.loads(get("/t0ken/model.json")[2])["class_names"] == ["a"] * 8


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "[1]",
        "no json",
        json.dumps(["\ud800"] * 8),
        "[" * 10**5,
        json.dumps(["x" * 300] * 8),
        '["a"]',
    ],
)
def test_what_is_no_list_of_names_is_refused(get, body):
    kind = {"method": "POST", "Content_Type": "application/json", "Origin": get.origin}
    status, _, text = get("/t0ken/class-names", body=body, **kind)
    assert status == 400
    assert "list of short texts" in text
    assert get.kept == []


def test_binds_to_this_machine_and_hides_the_page_behind_a_token(monkeypatch, asia):
    import uvicorn

    from rejoint.explorer import serve

    seen = {}

    def run(self, sockets):
        seen["bound"] = sockets[0].getsockname()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    serve(document(asia), ready=lambda address: seen.update(address=address))
    host, port = seen["bound"]
    assert host == "127.0.0.1"
    token = urlsplit(seen["address"]).path.strip("/")
    assert seen["address"] == f"http://127.0.0.1:{port}/{token}/"
    assert len(token) >= 24  # 18 random bytes


def test_without_the_extra_it_says_what_to_do(monkeypatch, asia):
    import sys

    from rejoint.explorer import serve

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"rejoint\[explore\].*rejoint export"):
        serve(document(asia))


def send_raw(address, data, seconds=5.0):
    """Send bytes, perhaps not all of a request; return all that comes until the end, if it does."""
    with socket.create_connection(("127.0.0.1", address.port), timeout=seconds) as own:
        own.sendall(data)
        parts = []
        while part := own.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_errors_have_the_policy_too(served, asia):
    def keep(names):
        raise RuntimeError("a bug")

    address = urlsplit(served(document(asia), keep=keep))
    body = json.dumps(["a"] * 8)
    own = f"Host: {address.netloc}\r\nOrigin: http://{address.netloc}\r\nConnection: close\r\n"
    sent = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    broken = send_raw(address, f"POST /t0ken/class-names HTTP/1.1\r\n{own}{sent}".encode())
    assert broken.startswith(b"HTTP/1.1 500")
    assert b"content-security-policy: default-src 'none'" in broken.lower()
    assert b"x-content-type-options: nosniff" in broken.lower()


def test_a_request_whose_body_does_not_arrive_is_ended(served, asia, monkeypatch):
    monkeypatch.setattr("rejoint.explorer.server.REQUEST_SECONDS", 0.5)
    address = urlsplit(served(document(asia), keep=list))
    own = f"Host: {address.netloc}\r\nOrigin: http://{address.netloc}\r\nConnection: close\r\n"
    half = f"POST /t0ken/class-names HTTP/1.1\r\n{own}Content-Type: application/json\r\n"
    answer = send_raw(address, f"{half}Content-Length: 50\r\n\r\n[".encode(), seconds=30.0)
    assert answer.startswith(b"HTTP/1.1 400")


def test_a_newer_model_is_not_overwritten(tmp_path, asia):
    path = tmp_path / "asia.rejoint"
    asia.save(path)
    opened = open_model(path)
    opened.keep_names(["a"] * asia.rank)
    opened.keep_names(["b"] * asia.rank)
    assert open_model(path).notes["class_names"] == ["b"] * asia.rank
    asia.sorted().save(path, notes={"source": "a newer fit"})
    before = path.read_bytes()
    with pytest.raises(FileChangedError, match="changed by another program: open it again"):
        opened.keep_names(["c"] * asia.rank)
    assert path.read_bytes() == before


def test_saving_over_a_newer_model_is_a_conflict(served, asia, tmp_path):
    path = tmp_path / "asia.rejoint"
    asia.save(path)
    opened = open_model(path)
    address = urlsplit(served(opened.document(), keep=opened.keep_names))
    asia.sorted().save(path)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    headers = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"}
    connection.request("POST", "/t0ken/class-names", json.dumps(["a"] * asia.rank), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.status == 409
    assert b"open it again" in text


def test_ctrl_c_does_not_wait_for_half_a_request(tmp_path, asia):
    asia.save(tmp_path / "asia.rejoint")
    words = ["-m", "rejoint.cli", "explore", str(tmp_path / "asia.rejoint"), "--no-browser"]
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    address = urlsplit(process.stdout.readline().strip())
    own = f"Host: {address.netloc}\r\nOrigin: http://{address.netloc}\r\n"
    head = f"POST {address.path}class-names HTTP/1.1\r\n{own}Content-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", address.port)) as half:
        half.sendall(f"{head}Content-Length: 50\r\n\r\n[".encode())
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=REQUEST_SECONDS - 1)  # which is when the request ends
    assert process.returncode == 0, err
    assert "Traceback" not in err
