"""Docstrings name what is near them by its short name: ``Records.of`` without the package."""

from typing import Any

PACKAGES = ("rejoint", "rejoint.estimation", "rejoint.factorization", "rejoint.records")


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Try the name within each package whose names are public."""
    if node.get("refdomain") != "py":
        return None
    domain, target = env.domains["py"], node["reftarget"]
    for package in PACKAGES:
        name = f"{package}.{target}"
        if name in domain.objects:
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, node["reftype"], name, node, content
            )
    return None


def setup(app: Any) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
