"""The page as one file: styles, scripts and model inside, nothing fetched, works from disk."""

import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from graphlib import TopologicalSorter
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from typing import Any

from rejoint.io.atomic import atomic_file

__all__ = ["assets", "bundle", "page", "write_page"]

# The only forms of import and export that the scripts use; a test holds them to it.
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (async function|function|class|const) (\w+)", re.MULTILINE)


def assets() -> dict[str, str]:
    """Text of the page's own files, by name.

    Examples
    --------
    >>> "main.js" in assets(), "page.py" in assets()
    (True, False)
    """
    folder = files("rejoint.explorer") / "static"
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith((".js", ".css", ".html"))
    }


def bundle(scripts: Mapping[str, str], main: str = "main.js") -> str:
    """Modules as one script: each becomes a function that returns what it exports.

    Examples
    --------
    >>> scripts = {"a.js": "export const x = 1;", "main.js": 'import { x } from "./a.js";'}
    >>> print(bundle(scripts))
    const a_js = (() => {
    const x = 1;
    return { x };
    })();
    const main_js = (() => {
    const { x } = a_js;
    return {  };
    })();
    """
    needs: dict[str, set[str]] = {}
    todo = [main]
    while todo:
        name = todo.pop()
        if name not in needs:
            needs[name] = {found[1] for found in _IMPORT.findall(scripts[name])}
            todo += needs[name]
    return "\n".join(
        _wrapped(name, scripts[name]) for name in TopologicalSorter(needs).static_order()
    )


def _wrapped(name: str, source: str) -> str:
    def import_line(match: re.Match[str]) -> str:
        renamed = re.sub(r"(\w+) as (\w+)", r"\1: \2", match[1])
        return f"const {{{renamed}}} = {_variable(match[2])};"

    exported = ", ".join(found[1] for found in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(import_line, source)).strip()
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _variable(name: str) -> str:
    return name.replace(".", "_")


def page(document: Mapping[str, Any]) -> str:
    """One HTML page with everything inside, under a policy that lets nothing else run or load.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.explorer import document
    >>> text = page(document(rj.datasets.asia(), title="Asia"))
    >>> "Content-Security-Policy" in text, "http://" in text.replace("http://www.w3.org", "")
    (True, False)
    """
    texts = assets()
    early, late, style = texts["theme.js"], bundle(texts), texts["style.css"]
    policy = (
        f"default-src 'none'; script-src {_hash(early)} {_hash(late)}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    swaps = {
        '<meta charset="utf-8">': '<meta charset="utf-8">\n<meta http-equiv="Content-Security-'
        f'Policy" content="{policy}">',
        "<title>rejoint</title>": f"<title>{html.escape(str(document['title']))}</title>",
        '<script src="static/theme.js"></script>': f"<script>{early}</script>",
        '<link rel="stylesheet" href="static/style.css">': f"<style>{style}</style>",
        # At the end: an inline script does not wait for the page as a module does.
        '<script type="module" src="static/main.js"></script>\n': "",
        "</body>": f'<script type="application/json" id="model">{_json(document)}</script>\n'
        f"<script>{late}</script>\n</body>",
    }
    text = texts["index.html"]
    for old, new in swaps.items():
        if text.count(old) != 1:
            raise RuntimeError(f"index.html of the explorer should have {old!r} exactly once.")
        before, after = text.split(old)
        text = before + new + after
    return text


def write_page(path: str | PathLike[str], document: Mapping[str, Any]) -> None:
    """Write the page to a file, all of it or nothing.

    Examples
    --------
    >>> import pathlib, tempfile, rejoint as rj
    >>> from rejoint.explorer import document
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "asia.html")
    ...     write_page(path, document(rj.datasets.asia()))
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    with atomic_file(path) as file:
        file.write(page(document).encode())


def _json(document: Mapping[str, Any]) -> str:
    """JSON that cannot end its script element, whatever the labels are."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
