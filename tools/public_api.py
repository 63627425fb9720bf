"""Print the public names with their arguments; ``--write`` stores them for a test."""

import inspect
import sys
from pathlib import Path
from typing import Any

SNAPSHOT = Path(__file__).parents[1] / "tests" / "public_api.txt"


def arguments(function: Any) -> str:
    """Return the names of the arguments, with a star before those that need their name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    names = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        optional = "" if parameter.default is parameter.empty or stars else "="
        if parameter.name not in ("self", "cls"):
            names.append(f"{stars}{parameter.name}{optional}")
    return f"({', '.join(names)})"


def lines_of(name: str, value: Any) -> list[str]:
    """Return a line for a name, and one for each public attribute of a class."""
    if inspect.ismodule(value):
        members = getattr(value, "__all__", ())
        return [
            line
            for member in members
            if not inspect.ismodule(getattr(value, member))
            for line in lines_of(f"{name}.{member}", getattr(value, member))
        ]
    if name.endswith("Policy"):  # tuned numbers are no part of the interface
        return [name]
    if not inspect.isclass(value):
        return [f"{name}{arguments(value)}" if callable(value) else name]
    lines = [f"{name}{arguments(value)}"]
    if "." in name:  # solvers: their methods are called by the package
        return lines
    for member, attribute in sorted(vars(value).items()):
        if member.startswith("_"):
            continue
        bound = inspect.unwrap(getattr(attribute, "__func__", attribute))
        lines.append(f"{name}.{member}{arguments(bound) if inspect.isfunction(bound) else ''}")
    return lines


def public_api() -> list[str]:
    """Return the public names of the package, sorted."""
    import rejoint as rj

    return sorted({line for name in rj.__all__ for line in lines_of(name, getattr(rj, name))})


def main() -> None:
    """Print or store them."""
    text = "\n".join(public_api()) + "\n"
    if "--write" in sys.argv[1:]:
        SNAPSHOT.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
