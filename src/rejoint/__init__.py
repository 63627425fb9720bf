"""Recover the joint probability of many discrete variables from pieces.

The pieces are records with missing values, or nothing but small tables of two, three or four
variables. They are counted into :class:`Marginals`, factored by :func:`factorize`, and the
:class:`LowRankPMF` that comes out answers every question about any of the variables.

Names are loaded when first used, so that ``import rejoint`` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint import (
        datasets,
        distributed,
        estimation,
        estimators,
        factorization,
        identifiability,
        io,
        metrics,
        plots,
        pmf,
        rank,
        records,
    )
    from rejoint.domain import Bin, Domain, Remark, Variable
    from rejoint.estimation.estimate import estimate
    from rejoint.estimators import (
        JointClassifier,
        JointImputer,
        JointPMF,
        JointRecommender,
        PooledEstimate,
        pool,
    )
    from rejoint.factorization.factorize import factorize
    from rejoint.factorization.reduce import Reduction
    from rejoint.io.load import load
    from rejoint.language import QueryError
    from rejoint.marginals import Marginals
    from rejoint.pmf import Answer, LowRankPMF, Mode
    from rejoint.population.rake import Raked, rake
    from rejoint.population.synthesize import Synthesis, synthesize
    from rejoint.queries import ZeroEvidenceError
    from rejoint.records import Records, Scan, SparseRecords
    from rejoint.records.read import read, read_chunks, scan
    from rejoint.solver import FitInterrupted, FitResult

__version__ = "0.1.0"

# Where the public names live that are no modules.
_NAMES = {
    "domain": "Bin Domain Remark Variable",
    "estimation": "estimate",
    "estimators": "JointClassifier JointImputer JointPMF JointRecommender PooledEstimate pool",
    "factorization": "factorize",
    "factorization.reduce": "Reduction",
    "io.load": "load",
    "language": "QueryError",
    "marginals": "Marginals",
    "pmf": "Answer LowRankPMF Mode",
    "population": "Raked Synthesis rake synthesize",
    "queries": "ZeroEvidenceError",
    "records": "Records Scan SparseRecords read read_chunks scan",
    "solver": "FitInterrupted FitResult",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Answer",
    "Bin",
    "Domain",
    "FitInterrupted",
    "FitResult",
    "JointClassifier",
    "JointImputer",
    "JointPMF",
    "JointRecommender",
    "LowRankPMF",
    "Marginals",
    "Mode",
    "PooledEstimate",
    "QueryError",
    "Raked",
    "Records",
    "Reduction",
    "Remark",
    "Scan",
    "SparseRecords",
    "Synthesis",
    "Variable",
    "ZeroEvidenceError",
    "datasets",
    "distributed",
    "estimate",
    "estimation",
    "estimators",
    "factorization",
    "factorize",
    "identifiability",
    "io",
    "load",
    "metrics",
    "plots",
    "pmf",
    "pool",
    "rake",
    "rank",
    "read",
    "read_chunks",
    "records",
    "scan",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rejoint' has no attribute {cite(name)}")
    if name not in _HOMES:
        return import_module(f"rejoint.{name}")
    value = getattr(import_module(f"rejoint.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
