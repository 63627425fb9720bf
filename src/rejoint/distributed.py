"""Records on the workers of a Dask cluster, and fits that are distributed over them.

The records stay where they are, as codes, a byte or two a cell. What moves for a table or a pass of
EM is the model on the way out, and sums on the way back. A worker that dies takes its parts with
it; Dask reads them anew elsewhere, and the sums are the same.

The only module that imports Dask (``pip install 'rejoint[distributed]'``).
"""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, Keys
from rejoint.domain.domain import Domain
from rejoint.domain.variable import code_dtype
from rejoint.estimation.data import Data
from rejoint.records.empty_cells import MOST_ROWS, sample_rows
from rejoint.records.encode import Discovered, Unmatched
from rejoint.records.files import Source
from rejoint.records.formats import RowGroups, pieces_of, row_groups_of
from rejoint.records.frames import Frame, take_apart
from rejoint.records.read import (
    FileOptions,
    block_size,
    encode_part,
    file_frames,
    files_of,
    find_domain_of_summaries,
    find_empty_levels,
    sample_parts,
    split_scan_options,
    summarize_frames,
)
from rejoint.records.records import Records
from rejoint.records.scan import MEMORY, Report, Scan, describe_progress
from rejoint.records.survey_design import DesignSums, SurveyDesign, WeightArguments
from rejoint.text import plural

__all__ = ["DaskScan", "executor", "scan"]

T = TypeVar("T")

#: How often a task is tried whose worker has died.
RETRIES = 5

#: Options of all tasks: what they give is never the same as before.
_TASK = {"pure": False, "retries": RETRIES}

#: Partitions whose sums are added up on the workers before they are fetched.
GROUP = 8


class EncodedPartition(NamedTuple):
    """Codes of a partition, as narrow as they can be, weights, and what the domain lacks.

    Survey weights are as given; ``sums`` are those that they are scaled by.
    """

    codes: NDArray[np.signedinteger[Any]]
    weight: NDArray[np.float64] | None
    unmatched: Unmatched
    sums: DesignSums | None = None
    cluster_keys: Keys | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DaskScan(Scan):
    """Records on the workers of a cluster; make one by :func:`scan`.

    Examples
    --------
    >>> issubclass(DaskScan, Scan)
    True
    """

    client: Any = None
    parts: tuple[Any, ...] = ()  # futures of EncodedPartition, in order

    @property
    def threads(self) -> int:
        """Always one: a worker computes on as many parts at once as it has threads."""
        return 1

    @property
    def part_memory(self) -> int:
        """An equal share for each sum that is fetched."""
        return self.memory // max(len(self.firsts), 1)

    @property
    def firsts(self) -> range:
        """The first part of each group whose results are added up before they are fetched."""
        return range(0, len(self.parts), GROUP)

    def map(
        self,
        function: Callable[..., T],
        skip: int = 0,
        report: Report | None = None,
        *,
        numbered: bool = False,
    ) -> Iterator[T]:
        """Apply a function on the workers, and give its results, some added up, in order."""
        sent: Any = function
        if len(self.parts) > GROUP:
            # Workers have it from each other then: a model of many levels would be sent, by the
            # one process that all tasks pass through, as often as there are parts.
            sent = self.client.submit(_itself, function, **_TASK)
        begun = perf_counter()
        waiting = [self._total(sent, first, numbered) for first in self.firsts[skip:]]
        each = (self.rows or 0) // max(len(self.firsts), 1)
        for number, future in enumerate(waiting, 1):
            yield future.result()
            if report is not None:
                report(
                    describe_progress(skip * each, number * each, self.rows, perf_counter() - begun)
                )

    def _total(self, function: Any, first: int, numbered: bool) -> Any:
        send, known = self.client.submit, (self.domain, self.design)
        found = [
            send(_on_part, function, part, *known, number if numbered else None, **_TASK)
            for number, part in enumerate(self.parts[first : first + GROUP], first)
        ]
        return found[0] if len(found) == 1 else send(_added, *found, **_TASK)


def scan(
    data: Any,
    *,
    domain: Domain | None = None,
    sample_weight: str | None = None,
    survey_weight: str | None = None,
    strata: str | None = None,
    clusters: str | None = None,
    memory: int = MEMORY,
    client: Any = None,
    **options: Any,
) -> DaskScan:
    """Encode records on the workers of a cluster and keep them there.

    Parameters
    ----------
    data : Dask DataFrame, Bag or Array, or path
        Partitions of frames, of dicts, or of rows of a 2-D array; a folder, a pattern or a list of
        files (Parquet, text, ...), which all workers can read: a partition is a file, or some of
        the row groups of a Parquet file.
    domain : Domain, optional
        Variables and levels; by default they are found in a first pass.
    sample_weight : str, optional
        The column with the weights: how many times each record counts.
    survey_weight, strata, clusters : str, optional
        Columns of a survey design; see :meth:`Records.of`.
    memory : int
        Bytes of records that the fit itself may hold: where all fit, once identical ones are
        merged, it is one of records in memory.
    client : distributed.Client, optional
        The cluster; by default the current one.
    **options
        As for :func:`rejoint.scan`.

    Returns
    -------
    DaskScan
        ``Marginals.count``, ``estimate`` and all else that takes a :class:`rejoint.Scan` works on
        it, with the same results.

    Examples
    --------
    >>> import dask.bag, rejoint as rj
    >>> from distributed import Client
    >>> client = Client()  # doctest: +SKIP
    >>> rows = dask.bag.from_sequence([{"a": "x"}, {"a": "y"}, {"a": "x"}, {}], npartitions=2)
    >>> data = rj.distributed.scan(rows)  # doctest: +SKIP
    >>> rj.Marginals.count(data, order=1)["a"]  # doctest: +SKIP
    array([2., 1.])
    """
    client = _client(client)
    weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
    weights.check_named("A scan")
    how, handle_unknown, declarations = split_scan_options(options, domain)
    partitions, stamp, name = _partitions(client, data, how)
    if domain is not None:
        discovered = Discovered(domain)
    else:
        seen = _computed(client, _see, partitions, weights)
        first = find_domain_of_summaries(client.gather(seen), name, declarations)
        most = -(-MOST_ROWS // len(partitions))

        def sampled() -> list[Codes]:
            codes: list[Codes] = client.gather(
                _computed(client, _sample, partitions, weights, first, most)
            )
            return codes

        discovered = find_empty_levels(first, sampled, declarations)
    found = discovered.domain
    parts = tuple(_computed(client, _encode, partitions, weights, discovered))
    unmatched = Unmatched()
    for mine in client.gather([client.submit(_unmatched, p, retries=RETRIES) for p in parts]):
        unmatched.add(mine)
    unmatched.report(found, handle_unknown)
    rows = unmatched.rows
    design = None
    if weights.is_survey:
        sums = DesignSums(found.shape)
        for mine in client.gather([client.submit(_sums, p, retries=RETRIES) for p in parts]):
            sums.join(mine)
        design = sums.design()
    scanned = DaskScan(
        *(found, lambda: iter(()), name, stamp, rows, True, memory, design, client, parts)
    )
    return replace(scanned, read=lambda: _fetched(scanned))


def executor(client: Any = None) -> Executor:
    """An executor for ``estimate`` and ``rank.select``: starts and folds go to the workers.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the current one.

    Examples
    --------
    >>> import rejoint as rj
    >>> from distributed import Client
    >>> client = Client()  # doctest: +SKIP
    >>> records = rj.datasets.asia().sample(500, random_state=0)
    >>> rj.estimate(records, rank=2, executor=executor(client))  # doctest: +SKIP
    """
    return _Placing(_client(client))


class _Placing(Executor):
    """Dask's own executor, to which the same records are sent once."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.inner = client.get_executor(retries=RETRIES, pure=False)
        self.placed: dict[str, Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Send a task; records in its arguments go there by themselves."""
        found: Future[Any] = self.inner.submit(fn, *map(self._place, args), **kwargs)
        return found

    def _place(self, argument: Any) -> Any:
        if not isinstance(argument, Data):
            return argument
        mark = argument.fingerprint
        if mark not in self.placed:
            # A task, and not scattered data, which could not be had again from a worker that died.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that it is large
                self.placed[mark] = self.client.submit(_itself, argument, **_TASK)
        return self.placed[mark]


def _client(client: Any) -> Any:
    try:
        return _imported("distributed").default_client() if client is None else client
    except ValueError:
        raise ValueError(
            "There is no cluster: start with client = distributed.Client(...), which uses this "
            "machine without arguments."
        ) from None


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError("Clusters need Dask: pip install 'rejoint[distributed]'.") from None


class _File(NamedTuple):
    """A partition that is a file, or some row groups of it."""

    path: str
    how: FileOptions
    groups: range | None = None

    @property
    def source(self) -> Source:
        return Source(self.path, self.groups)


def _partitions(client: Any, data: Any, how: FileOptions) -> tuple[list[Any], str, str]:
    """Partitions, what tells them from others, and what they are called."""
    tokenize = _imported("dask.base").tokenize
    if isinstance(data, str | PathLike):
        data = files_of(data)
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | PathLike):
        paths = [str(path) for path in data]
        found = _split(client, [_File(path, how) for path in paths])
        stamp = tokenize([(file.path, file.groups) for file in found])
        return found, stamp, plural(len(paths), "file")
    if not hasattr(data, "to_delayed"):
        raise TypeError(
            "distributed.scan takes a Dask DataFrame, Bag or Array, or paths, not a "
            f"{type(data).__name__}; use rejoint.scan for data that one machine reads."
        )
    if how != FileOptions():
        raise TypeError("columns, without, format and so on apply to files only.")
    kind = type(data).__name__
    if hasattr(data, "rechunk"):
        if data.ndim != 2:
            raise ValueError(f"An array of records must have 2 axes, not {data.ndim}.")
        data = data.rechunk({1: -1})
    stamp = tokenize(data)
    return list(np.ravel(np.asarray(data.to_delayed(), dtype=object))), stamp, f"a Dask {kind}"


def _split(client: Any, files: list[_File]) -> list[_File]:
    """Parquet files by their row groups, which the workers look up: all others stay whole."""
    pieces = pieces_of(client.gather(_computed(client, _groups, files)))
    return [
        file._replace(groups=groups)
        for file, mine in zip(files, pieces, strict=True)
        for groups in (mine if len(mine) > 1 else [None])
    ]


def _groups(file: _File) -> RowGroups:
    return row_groups_of(file.source, file.how.format)


def _computed(client: Any, function: Callable[..., Any], partitions: list[Any], *rest: Any) -> Any:
    """Futures of a function of each partition, which can be computed again."""
    lazy = _imported("dask").delayed(function, pure=False)
    tasks = [lazy(partition, *rest) for partition in partitions]
    return client.compute(tasks, retries=RETRIES)


def _see(partition: Any, weights: WeightArguments) -> Any:
    return summarize_frames(_frames(partition, weights), weights)


def _frames(partition: Any, weights: WeightArguments) -> Iterator[Frame]:
    if isinstance(partition, _File):
        source, how = partition.source, partition.how
        return file_frames(source, how, block_size(source, how), weights)
    return iter([take_apart(_plain(partition))])


def _sample(partition: Any, weights: WeightArguments, first: Discovered, most: int) -> Codes:
    """Codes of some rows of a partition."""
    parts = [*sample_parts(_frames(partition, weights), first, weights)]
    none = np.empty((0, len(first.domain)), dtype=np.int8)
    return sample_rows(np.concatenate([none, *parts]), most)


def _encode(partition: Any, weights: WeightArguments, discovered: Discovered) -> EncodedPartition:
    domain = discovered.domain
    frames = _frames(partition, weights)
    unmatched, sums = Unmatched(), DesignSums(domain.shape)
    width = code_dtype(max(domain.shape))
    codes, mass = [np.empty((0, len(domain)), dtype=width)], [np.empty(0)]
    keys = [np.empty(0, dtype=np.int64)]
    for frame in frames:
        if not frame.rows:
            continue
        part, rows = encode_part(frame, discovered, weights, unmatched)
        codes.append(part.codes.astype(width))
        mass.append(rows.raw)
        if weights.is_survey:
            sums.add(part.codes, rows)
        if rows.cluster_keys is not None:
            keys.append(rows.cluster_keys)
    clusters = None if weights.clusters is None else np.concatenate(keys)
    weight = np.concatenate(mass) if weights.given else None
    return EncodedPartition(np.concatenate(codes), weight, unmatched, sums, clusters)


def _plain(partition: Any) -> Any:
    """Rows of a bag may come as any iterable."""
    return partition if hasattr(partition, "__len__") else list(partition)


def _unmatched(part: EncodedPartition) -> Unmatched:
    return part.unmatched


def _sums(part: EncodedPartition) -> DesignSums | None:
    return part.sums


def _records(part: EncodedPartition, domain: Domain, design: SurveyDesign | None) -> Records:
    weight = part.weight
    if design is not None and weight is not None:
        weight = design.scale(weight)
    return Records._trusted(domain, part.codes, weight, cluster_keys=part.cluster_keys)


def _on_part(
    function: Callable[..., T],
    part: EncodedPartition,
    domain: Domain,
    design: SurveyDesign | None,
    number: int | None,
) -> T:
    records = _records(part, domain, design)
    return function(records) if number is None else function(records, number)


def _added(*found: Any) -> Any:
    total = found[0]
    for more in found[1:]:
        total = total + more
    return total


def _itself(argument: Any) -> Any:
    return argument


def _fetched(scanned: DaskScan) -> Iterator[Records]:
    for part in scanned.parts:
        found = part.result()
        if len(found.codes):
            yield _records(found, scanned.domain, scanned.design)
