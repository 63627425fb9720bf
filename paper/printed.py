"""The numbers that the paper prints."""

ORDERS = {2: "Pairs", 3: "Triples", 4: "Quadruples"}
RANKS = (5, 10, 15)

#: Table I: relative error of rank-F models of three-variable PMFs.
TABLE1 = {
    "INCOME": {5: 2.1e-2, 10: 5.5e-3, 15: 5.1e-3},
    "MUSHROOM": {5: 4.3e-2, 10: 2.4e-2, 15: 1.9e-2},
    "MOVIELENS": {5: 1.8e-2, 10: 7.5e-3, 15: 4.1e-3},
}

#: Tables II (I = 3) and III (N = 6): largest rank by (N, I), from triples and from quadruples.
TABLE2 = {
    (6, 3): (4, 10),
    (10, 3): (7, 36),
    (20, 3): (27, 179),
    (40, 3): (105, 729),
    (80, 3): (410, 2916),
}
TABLE3 = {
    (6, 6): (24, 45),
    (6, 10): (40, 131),
    (6, 20): (105, 544),
    (6, 40): (410, 2220),
    (6, 80): (1620, 8966),
}

#: Table IV: (MRE_fact, MRE_ten) by (rank, order), tables known exactly.
TABLE4 = {
    (5, 2): (0.277, 0.148),
    (5, 3): (1.18e-7, 4.58e-8),
    (5, 4): (3.39e-8, 1.19e-8),
    (10, 2): (0.440, 0.187),
    (10, 3): (3.58e-7, 8.70e-8),
    (10, 4): (1.26e-7, 2.58e-8),
    (15, 2): (0.466, 0.184),
    (15, 3): (6.77e-7, 1.52e-7),
    (15, 4): (1.78e-7, 3.57e-8),
}

#: Table V: misclassification (mean, standard deviation) by method and set.
SETS = ("INCOME", "CREDIT", "HEART", "MUSHROOM", "VOTES", "CAR", "NURSERY")
_TABLE5 = {
    "CP (Pairs)": ".177 .004 .134 .019 .151 .023 .010 .007 .046 .024 .128 .021 .101 .009",
    "CP (Triples)": ".175 .003 .129 .018 .147 .031 .006 .002 .043 .024 .089 .016 .069 .011",
    "CP (Quadruples)": ".171 .003 .123 .018 .138 .029 .002 .001 .042 .020 .074 .015 .061 .007",
    "SVM (Linear)": ".179 .004 .146 .027 .170 .053 .000 .000 .038 .025 .065 .006 .063 .004",
    "SVM (RBF)": ".174 .004 .136 .018 .187 .055 .000 .000 .079 .024 .026 .008 .006 .001",
    "Naive Bayes": ".209 .005 .140 .018 .166 .026 .044 .005 .096 .022 .151 .016 .097 .007",
}

#: Table VI: number of variables with the label, and the largest rank tried.
TABLE6 = {
    "INCOME": (8, 20),
    "CREDIT": (9, 20),
    "HEART": (9, 10),
    "MUSHROOM": (22, 20),
    "VOTES": (17, 10),
    "CAR": (7, 15),
    "NURSERY": (9, 15),
}

#: Table VII: (RMSE, its deviation, MAE, its deviation) by method and data set.
MOVIES = ("action", "animation", "romance")
_TABLE7 = {
    "CP (Pairs)": ".802 .003 .608 .003 .795 .002 .611 .002 .897 .003 .702 .002",
    "CP (Triples)": ".783 .002 .591 .002 .785 .002 .599 .002 .887 .002 .691 .002",
    "CP (Quadruples)": ".778 .002 .588 .002 .786 .002 .600 .002 .884 .002 .689 .002",
    "Global Average": ".945 .001 .693 .001 .906 .002 .653 .002 .996 .002 .798 .001",
    "User Average": ".879 .002 .679 .001 .830 .003 .625 .002 1.010 .002 .768 .002",
    "Movie Average": ".886 .002 .705 .001 .889 .002 .673 .002 .942 .002 .754 .001",
    "BMF": ".797 .002 .623 .002 .792 .002 .604 .002 .904 .003 .701 .003",
}


def _grouped(text: str, names: tuple[str, ...], size: int) -> dict[str, tuple[float, ...]]:
    numbers = [float(word) for word in text.split()]
    if len(numbers) != size * len(names):
        raise ValueError(f"{len(numbers)} numbers for {len(names)} columns of {size}.")
    return {name: tuple(numbers[k * size : (k + 1) * size]) for k, name in enumerate(names)}


TABLE5 = {method: _grouped(text, SETS, 2) for method, text in _TABLE5.items()}
TABLE7 = {method: _grouped(text, MOVIES, 4) for method, text in _TABLE7.items()}
