"""The bare query beside the planner: filter the same offers and take the 20 cheapest, without any planning.

    python bench/bare.py numpy|duckdb FOLDER [ROUNDS]

Cards by name, on demand, in some regions, cheapest per card and hour: over coded numpy columns kept as
arrays, and in DuckDB over a Parquet file with the names spelled out. No memory, no speed, no bill, no
reasons: what the machine needs to look at so many rows at all.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rackrate.offers.texts import Texts

CARDS = ("A100", "A40", "L40S", "H100", "RTX 4090", "A6000", "L4", "A10")
MARKET = "on_demand"
REGIONS = ("us-east-1", "us-central1", "eastus", "eu-north1", "FIN-03", "europe-west4")
BEST = 20
COLUMNS = ("card", "market", "region", "gpus", "price")
PARQUET = "offers.parquet"


def prepare(texts: "Texts", folder: Path) -> None:
    """Write the offers as arrays of codes and as Parquet."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    gpus = _values(texts, "gpus").astype(np.int64)
    hourly = _values(texts, "price").astype(np.float64) / _values(texts, "hours_in_term").astype(np.float64)
    for name, field in (("card", "card_label"), ("market", "market"), ("region", "region")):
        np.save(folder / f"{name}.npy", texts[field].codes)
        (folder / f"{name}.txt").write_text("\n".join(texts[field].words), "utf-8")
    np.save(folder / "gpus.npy", gpus)
    np.save(folder / "price.npy", hourly)
    offers = {
        **{name: _values(texts, name) for name in ("provider", "name", "card_label", "region", "market", "currency")},
        "gpus": gpus,
        "price": hourly,
    }
    assert offers
    target = str(folder / PARQUET).replace("'", "''")
    duckdb.sql(f"COPY (SELECT * FROM offers) TO '{target}' (FORMAT parquet)")  # noqa: S608 - a path, quoted above


def _values(texts: "Texts", field: str) -> "NDArray[np.object_]":
    words, codes = texts[field]
    return np.array(words, dtype=object)[codes]


def numpy_query(folder: Path) -> Callable[[], list[int]]:
    """The query over arrays; loading them is not in it."""
    columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in COLUMNS}
    wanted = {
        name: np.isin((folder / f"{name}.txt").read_text("utf-8").split("\n"), words)
        for name, words in (("card", CARDS), ("market", (MARKET,)), ("region", REGIONS))
    }

    def query() -> list[int]:
        kept = wanted["card"][columns["card"]] & wanted["market"][columns["market"]]
        rows = np.flatnonzero(kept & wanted["region"][columns["region"]])
        price = columns["price"][rows] / columns["gpus"][rows]
        best = np.argpartition(price, BEST)[:BEST] if len(rows) > BEST else np.arange(len(rows))
        found: list[int] = rows[best[np.argsort(price[best])]].tolist()
        return found

    return query


def duckdb_query(folder: Path) -> Callable[[], list[tuple[object, ...]]]:
    """The query over Parquet."""
    import duckdb

    connection = duckdb.connect()

    def listed(words: tuple[str, ...]) -> str:
        return ", ".join(f"'{word}'" for word in words)

    source = str(folder / PARQUET).replace("'", "''")
    text = f"""
        SELECT provider, name, region, price / gpus AS each FROM '{source}'
        WHERE card_label IN ({listed(CARDS)}) AND market = '{MARKET}' AND region IN ({listed(REGIONS)})
        ORDER BY each LIMIT {BEST}
    """  # noqa: S608 - our own words
    return lambda: connection.sql(text).fetchall()


def main(kind: str, folder: str, rounds: str = "0") -> None:
    """The first run's rows, and the median of more runs in milliseconds."""
    query: Callable[[], object] = {"numpy": numpy_query, "duckdb": duckdb_query}[kind](Path(folder))
    query()
    times = []
    for _ in range(int(rounds)):
        begin = time.perf_counter()
        query()
        times.append(time.perf_counter() - begin)
    print(statistics.median(times) * 1000 if times else "done")


if __name__ == "__main__":
    main(*sys.argv[1:])
