"""The explorer's page: served with its files, or as one file that works from disk."""

import re
from base64 import b64encode
from collections.abc import Mapping
from graphlib import TopologicalSorter
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any

from rejoint.io.atomic import atomic_file

if TYPE_CHECKING:
    from jinja2 import Template

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
        if entry.name.endswith((".js", ".css"))
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
    needs: dict[str, list[str]] = {}
    todo = [main]
    while todo:
        name = todo.pop()
        if name not in needs:
            needs[name] = [found[1] for found in _IMPORT.findall(scripts[name])]
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


def load_template() -> "Template":
    """Return the template of the page; what it is given is escaped.

    Examples
    --------
    >>> load_template().render(title="<a>").count("&lt;a&gt;")
    1
    """
    from jinja2 import Environment  # of all commands, three write a page

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    compact = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = compact
    source = files("rejoint.explorer") / "templates" / "page.html"
    return environment.from_string(source.read_text(encoding="utf-8"))


def page(document: Mapping[str, Any]) -> str:
    """Return one HTML page with everything inside; its policy lets nothing else run or load.

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
    inline = {"policy": policy, "early": early, "late": late, "style": style, "document": document}
    return load_template().render(title=document["title"], inline=inline)


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


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
