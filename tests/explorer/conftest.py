"""A real browser and Node for the explorer's tests; where there is none they are skipped."""

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from page_models import visit

import rejoint as rj
from rejoint.explorer import document, write_page
from rejoint.explorer.document import pair_fit
from rejoint.explorer.page import assets

# Chromium reports to its maker and looks for updates unless told not to.
QUIET = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# Milliseconds: on a machine that has ten times as much to do as it can, a browser takes its time.
PATIENCE = 30_000


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    api.expect.set_options(timeout=PATIENCE)
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    flags = [*QUIET, "--no-sandbox"] if os.geteuid() == 0 else QUIET
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()


# Reads lines of [name of an exported function, argument], writes what it returns.
NODE = """
import { createInterface } from "node:readline";
import * as functions from "./functions.js";
const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, argument] = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await functions[name](argument), plain)}\\n`);
}
"""


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """Call a function of ``functions.js``, which imports the page's own scripts, in Node.

    Numbers that JSON does not have, nan and the infinite ones, come back as None.
    """
    path = shutil.which("node")
    if path is None:
        playwright = pytest.importorskip("playwright", reason="there is no Node on this machine")
        path = str(Path(playwright.__file__).parent / "driver" / "node")
    folder = tmp_path_factory.mktemp("node")
    for name, text in assets().items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).parent / "functions.js", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(NODE)
    with subprocess.Popen(
        [path, "run.js"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def call(name, argument):
            process.stdin.write(json.dumps([name, argument]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"{name} failed in Node: see the errors above"
            return json.loads(answer)

        yield call
        process.stdin.close()


@pytest.fixture
def tab(browser):
    """A new page that fails the test on any error of a script and on any request elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda line: line.type == "error" and wrong.append(f"console: {line.text}"))
    page.on("request", lambda request: own(request.url) or wrong.append(f"asked {request.url}"))
    yield page
    context.close()
    assert wrong == []


def own(url: str) -> bool:
    return url.startswith(("file:///", "data:", "blob:", "http://127.0.0.1:"))


@pytest.fixture(scope="session")
def asia():
    return rj.datasets.asia()


@pytest.fixture(scope="session")
def town():
    """The model of six published tables."""
    return rj.factorize(rj.Marginals.read(rj.datasets.town_tables())).pmf


@pytest.fixture(scope="session")
def posterior(asia):
    """Asia with draws around it; their mean answers."""
    rng = np.random.default_rng(0)

    def drawn():
        factors = [
            np.column_stack([rng.dirichlet(100 * column + 0.5) for column in factor.T])
            for factor in asia.factors
        ]
        return rj.LowRankPMF(rng.dirichlet(100 * asia.weights + 0.5), factors, asia.domain)

    draws = [drawn() for _ in range(40)]
    return rj.LowRankPMF(asia.weights, asia.factors, asia.domain, draws)


@pytest.fixture(scope="session")
def patients(asia):
    records = asia.sample(2_000, random_state=0)
    return rj.datasets.remove_cells(records, 0.1, random_state=1)


@pytest.fixture(scope="session")
def asia_page(asia, patients, tmp_path_factory):
    """Address of the exported page of Asia with its records."""
    path = tmp_path_factory.mktemp("page") / "asia.html"
    fit = pair_fit(asia, patients)
    write_page(path, document(asia, title="Asia", source="asia.rejoint", records=patients, fit=fit))
    return path.as_uri()


@pytest.fixture
def opened(tab, tmp_path):
    """Export a document and open it; ``link`` is the state in the address."""

    def show(plain, link=""):
        path = tmp_path / "page.html"
        write_page(path, plain)
        visit(tab, path.as_uri() + link)
        return tab

    return show


@pytest.fixture
def served(tmp_path):
    """Run the real server in a thread; returns the address of a document."""
    pytest.importorskip("uvicorn")
    running = []

    def start(plain, **calls):
        import socket

        from rejoint.explorer.server import application, make_server

        own_socket = socket.create_server(("127.0.0.1", 0))
        port = own_socket.getsockname()[1]
        app = application(plain, "t0ken", port, **calls)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own_socket]})
        thread.start()
        running.append((server, thread, own_socket))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{port}/t0ken/"

    yield start
    for server, thread, own_socket in running:
        server.should_exit = True
        thread.join()
        own_socket.close()
