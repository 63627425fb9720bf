"""Assemble ``changes/*.md`` into CHANGELOG.md.

Each change that users see is a file ``changes/<slug>.<added|changed|removed|fixed>.md`` with a
plain sentence or two, so that two changes never conflict. ``python -m tools.changelog`` prints what
is collected; ``--release 1.2.0`` moves it with what stands below Unreleased into a section of its
own, with the date, and removes the files; ``--check 1.2.0`` prints that section, or fails where it
is missing or files are left over.
"""

import argparse
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("added", "changed", "removed", "fixed")


def read_fragments(folder: Path) -> dict[str, list[str]]:
    """Read the texts of each kind, in the order of their slugs."""
    fragments: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        kind = path.stem.rpartition(".")[2]
        text = " ".join(path.read_text(encoding="utf-8").split())
        if kind not in fragments or not path.stem.removesuffix(f".{kind}"):
            raise SystemExit(f"{path.name}: name it <slug>.<{'|'.join(KINDS)}>.md")
        if not text:
            raise SystemExit(f"{path.name} is empty")
        fragments[kind].append(text.removeprefix("- "))
    return fragments


def render(fragments: dict[str, list[str]]) -> str:
    """Render fragments as lists under a title for each kind."""
    parts = [
        f"### {kind.title()}\n\n" + "".join(f"- {text}\n" for text in texts)
        for kind, texts in fragments.items()
        if texts
    ]
    return "\n".join(parts)


def section(text: str, title: str) -> str:
    """Return what stands below ``## [title]``, up to the next section."""
    match = re.search(rf"^## \[{re.escape(title)}\].*?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if match is None:
        raise SystemExit(f"CHANGELOG.md has no section [{title}]")
    return match[1].strip() + "\n"


def merge(old: str, new: str) -> str:
    """Add the lists of ``new`` to those of ``old`` that have the same title."""
    for part in re.split(r"^(?=### )", new, flags=re.M):
        title, _, body = part.partition("\n")
        match = re.search(rf"^{re.escape(title)}\n+", old, re.M) if title else None
        if match:
            old = old[: match.end()] + body.strip() + "\n" + old[match.end() :]
        elif part.strip():
            old = f"{old.rstrip()}\n\n{part.strip()}\n"
    return old.strip() + "\n"


def released(text: str, version: str, fragments: dict[str, list[str]], day: str) -> str:
    """Return the changelog with Unreleased and the fragments as a section of their own."""
    before = section(text, "Unreleased")
    body = merge(before, render(fragments))
    head, _, tail = text.partition("## [Unreleased]")
    tail = tail.lstrip().removeprefix(before.strip()).lstrip()
    return f"{head}## [Unreleased]\n\n## [{version}] - {day}\n\n{body}\n{tail}".rstrip() + "\n"


def main() -> None:
    """Print, release or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--release", metavar="VERSION")
    parser.add_argument("--check", metavar="VERSION")
    options = parser.parse_args()
    path, folder = ROOT / "CHANGELOG.md", ROOT / "changes"
    fragments = read_fragments(folder)
    if options.check:
        if any(fragments.values()):
            raise SystemExit(f"changes/ still has fragments: --release {options.check} first")
        sys.stdout.write(section(path.read_text(encoding="utf-8"), options.check))
    elif options.release:
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        text = released(path.read_text(encoding="utf-8"), options.release, fragments, day)
        path.write_text(text, encoding="utf-8")
        for fragment in folder.glob("*.md"):
            fragment.unlink()
    else:
        sys.stdout.write(render(fragments))


if __name__ == "__main__":
    main()
