"""Identifiability: the rank that tables determine, and what they leave undetermined.

layout               TableLayout: which variables and tables there are
bounds               RankBound, and the lemmas as formulas
groupings            groups of variables between which all tables are there
rank_report          report: every bound on the rank, which are proved, the best
gram_sums            sums over tables of inner products, and the Jacobian's Gram matrix from them
jacobian             jacobian: whether classes and joint are locally unique
jacobian_rank        ranks and singular values of the Jacobian, from its Gram matrix
fiber                all models of one rank that have the same tables: walks, fits
uniqueness_proof     lemmas that prove one model to be the only one
composite_view       a model with blocks as one over composite variables
certificate          certify: whether one model is the only one with its tables
plan                 plan: few tables that suffice for a rank
ambiguity            ambiguity: two models with the same tables and different answers
from_pairs           from_1d, from_pairs: joints that follow under an assumption
assessment           what a fit says about its own tables or records
model_verdict        the one verdict on a model from tables, for report, page and command line

Tables II and III of the paper, all twenty numbers: as printed, by the formula behind them, and
the bounds of the theorems, the corrected lemmas (Kruskal, 2, 3) and counting for the same tables.

>>> from rejoint.identifiability import report
>>> settings = [
...     (6, 3),
...     (10, 3),
...     (20, 3),
...     (40, 3),
...     (80, 3),
...     (6, 6),
...     (6, 10),
...     (6, 20),
...     (6, 40),
...     (6, 80),
... ]
>>> printed = {
...     3: [4, 7, 27, 105, 410, 24, 40, 105, 410, 1620],
...     4: [10, 36, 179, 729, 2916, 45, 131, 544, 2220, 8966],
... }
>>> lemmas = ["Lemma 1 (Kruskal)", "Lemma 2", "Lemma 3"]
>>> for k, (n, i) in enumerate(settings):
...     triples, quadruples = report([i] * n, order=3), report([i] * n, order=4)
...     shown = triples["Table II/III"].rank, quadruples["Theorem 3"].rank
...     theorems = [triples[f"Theorem {t}"].rank for t in (1, 2)]
...     print(
...         f"{n:2} {i:2}",
...         shown == (printed[3][k], printed[4][k]),
...         printed[3][k],
...         theorems,
...         [triples[name].rank for name in lemmas],
...         triples.counting,
...         printed[4][k],
...         quadruples["Lemma 4 (compound)"].rank,
...     )
 6  3 True 4 [4, 4] [6, 7, 4] 17 10 9
10  3 True 7 [4, 16] [10, 13, 8] 55 36 30
20  3 True 27 [25, 64] [20, 29, 32] 241 179 110
40  3 True 105 [64, 256] [40, 64, 128] 1015 729 451
80  3 True 410 [196, 1024] [80, 137, 512] 4161 2916 1801
 6  6 True 24 [24, 16] [15, 21, 16] 93 45 41
 6 10 True 40 [40, 64] [27, 37, 64] 288 131 124
 6 20 True 105 [80, 256] [57, 77, 256] 1240 544 531
 6 40 True 410 [160, 1024] [117, 157, 1024] 5146 2220 2192
 6 80 True 1620 [320, 4096] [237, 317, 4096] 20957 8966 8910
"""

from rejoint.identifiability.ambiguity import Ambiguity, ambiguity
from rejoint.identifiability.bounds import RankBound
from rejoint.identifiability.certificate import Certificate, certify
from rejoint.identifiability.from_pairs import from_1d, from_pairs
from rejoint.identifiability.jacobian import LocalIdentifiability, jacobian
from rejoint.identifiability.layout import TableLayout
from rejoint.identifiability.model_verdict import ModelVerdict, model_verdict
from rejoint.identifiability.plan import Plan, plan
from rejoint.identifiability.rank_report import Report, report

__all__ = [
    "Ambiguity",
    "Certificate",
    "LocalIdentifiability",
    "ModelVerdict",
    "Plan",
    "RankBound",
    "Report",
    "TableLayout",
    "ambiguity",
    "certify",
    "from_1d",
    "from_pairs",
    "jacobian",
    "model_verdict",
    "plan",
    "report",
]
