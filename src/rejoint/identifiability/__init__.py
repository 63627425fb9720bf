"""What can be known from which tables: the rank that they determine, and what stays open.

reporting     report: every bound on the rank, which are proved, the best (Report, Bound)
goodman       jacobian: whether classes and joint are locally unique (Local)
certificate   certify: whether one model is the only one with its tables (Certificate)
planning      plan: few tables that suffice for a rank (Plan)
ambiguous     ambiguity: two models with the same tables and other answers (Ambiguity)
direct        from_1d, from_pairs: joints that follow under an assumption
concerns      what a fit says of its own tables

layout        which variables and tables there are
lemmas        the paper's lemmas as formulas
printed       its theorems as printed
corrected     the lemmas with the sides put right, all tables of an order
groupings     the same for given tables
hanging       variables that follow from others by overlap
partitions    all partitions into groups, by their sums
grams         closed-form Gram matrices of the Jacobian
modular       exact ranks modulo a prime
spectrum      smallest singular values
independence  Kruskal ranks and compound matrices of factors
model_groups  stacked factors of one model
walking       walks through models with the same tables
searching     sets of tables that fulfil a wish

Tables II and III of the paper, all twenty numbers: as printed, by the formula behind them, and
what the theorems, the corrected lemmas (Kruskal, 2, 3) and counting say of the same tables.

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
from rejoint.identifiability.bounds import Bound
from rejoint.identifiability.bounds_report import Report, report
from rejoint.identifiability.certificate import Certificate, certify
from rejoint.identifiability.from_pairs import from_1d, from_pairs
from rejoint.identifiability.jacobian import Local, jacobian
from rejoint.identifiability.plan import Plan, plan

__all__ = [
    "Ambiguity",
    "Bound",
    "Certificate",
    "Local",
    "Plan",
    "Report",
    "ambiguity",
    "certify",
    "from_1d",
    "from_pairs",
    "jacobian",
    "plan",
    "report",
]
