"""The server lets its own page in and nobody else."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from rejoint.explorer import document

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


@pytest.mark.parametrize("body", ["{}", "[1]", "no json", json.dumps(["x" * 300] * 8), '["a"]'])
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
