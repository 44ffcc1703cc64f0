"""``lot-grpc eval``: measures retrieval quality on sets of queries with known answers."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer import Option

from lot_grpc.cli.options import Config, Json, new_file
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin

if TYPE_CHECKING:
    from lot_grpc.evaluation.runs import Comparison


def eval_(
    *,
    data: list[Path] = Option(
        ..., "--data", "-d", metavar="DIR", help="Folder of an evaluation set. Repeatable."
    ),
    filters: list[str] | None = Option(
        None,
        "--filter",
        metavar="FIELD",
        help="Field in which a document must match the query, applied as a real filter "
        "(`language`, else a label). SET=FIELD is for that set only. Repeatable.",
    ),
    rerank: bool = Option(False, "--rerank", help="Also measure reranked hybrid search. Slow."),
    queries: int = Option(0, "--queries", min=0, metavar="N", help="Use N of the queries; 0: all."),
    groups: bool = Option(False, "--groups", help="Break results down by the queries' `kind`."),
    save: Path | None = Option(
        None, "--save", metavar="FILE", callback=new_file, help="Save the results of each query."
    ),
    compare: Path | None = Option(
        None, "--compare", metavar="FILE", help="Compare with a saved run."
    ),
    picture: Path | None = Option(
        None, "--picture", metavar="FILE", callback=new_file, help="Draw nDCG@10 as SVG."
    ),
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Measure retrieval quality on sets of queries with known answers.

    Documents are saved as patterns into an empty store that is removed afterwards, and found again
    through the services as `serve` sets them up, without gRPC in between. Your data is not touched.

    A set is a folder in BEIR's layout, each file plain or .gz: corpus.jsonl and queries.jsonl with
    one {"id" or "_id", "text"} a line (a document may have "title"; a query "kind", "source", and
    "exclude": ids of documents that do not count), and qrels.tsv or qrels/test.tsv with query id,
    document id and score, separated by tabs. exclusions.tsv (query id, document id) excludes too.
    If all documents have "message" and "solution", they are saved as error solutions instead, and
    the queries are error messages.
    """
    from lot_grpc.cli.eval_runs import load_sets, measured, print_comparison, print_result
    from lot_grpc.evaluation import runs
    from lot_grpc.evaluation.picture import draw
    from lot_grpc.evaluation.results import result_json

    settings = begin(config)
    earlier = runs.read_run(compare) if compare else None
    for path in (save, picture):
        if path:
            runs.check_writable(path)  # before the work, not afterwards
    datasets = load_sets(data, filters or [], queries)
    if earlier:
        for dataset in datasets:
            runs.check_comparable(dataset, earlier)
    # Like Ctrl-C, so that a `kill` leaves no folder behind either.
    signal.signal(signal.SIGTERM, _interrupt)
    shown = sys.stderr.isatty() and not as_json
    with ProgressDisplay() if shown else nullcontext(_no_progress) as progress:
        results = [measured(settings, one, progress, rerank=rerank) for one in datasets]
    comparisons = [runs.compare(result, earlier) for result in results] if earlier else []
    if as_json:
        found = [result_json(result) for result in results]
        for one, comparison in zip(found, comparisons, strict=False):
            one["compared"] = _comparison_json(comparison, str(compare))
        typer.echo(json.dumps(found[0] if len(found) == 1 else {"sets": found}, indent=2))
    else:
        for result in results:
            print_result(result, groups=groups)
        for comparison in comparisons:
            print_comparison(comparison, compare)
    if save:
        runs.save_run(save, results)
    if picture:
        runs.write_text(picture, draw(results))


def _interrupt(*_: object) -> None:
    """Interrupt, even where Ctrl-C is ignored, as in the background of a script."""
    raise KeyboardInterrupt


def _no_progress(task: str, done: int, total: int) -> None:
    """No progress: for ``as_json``, and without a terminal."""


def _comparison_json(comparison: Comparison, path: str) -> Mapping[str, Any]:
    from lot_grpc.evaluation.results import difference_json

    differences = {
        leg: {metric: difference_json(one) for metric, one in metrics.items()}
        for leg, metrics in comparison.legs.items()
    }
    return {"with": path, "notes": list(comparison.notes), **differences}
