"""The recordings of a folder: which there are, which failed and why, and the making of those that are missing."""
from __future__ import annotations

import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Iterable, List

from .rows import Row

RECORDER = pathlib.Path(__file__).with_name("recorder.py")
MOST_SECONDS = 900


def default_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "snsim" / "times"


class Recordings:
    """A folder of the user's. What failed has a file with the reason, and is tried again when that is deleted."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, row: Row) -> pathlib.Path:
        return self.folder / f"{row.key}.rec.gz"

    def _failure(self, row: Row) -> pathlib.Path:
        return self.folder / f"{row.key}.failed"

    def has(self, row: Row) -> bool:
        return self.path(row).exists()

    def failed(self, row: Row) -> str:
        """Why there is none; empty: it was not tried."""
        return self._failure(row).read_text().strip() if self._failure(row).exists() else ""

    def missing(self, rows: Iterable[Row]) -> List[Row]:
        return list({row.key: row for row in rows if not self.has(row) and not self.failed(row)}.values())

    def make(self, rows: Iterable[Row], jobs: int, python: str, seconds: int = MOST_SECONDS) -> None:
        """Records what is missing by so many processes, each network in so many seconds at most."""
        todo: "queue.Queue[Row]" = queue.Queue()
        for row in self.missing(rows):
            todo.put(row)
        count = todo.qsize()
        threads = [threading.Thread(target=self._work, args=(todo, count, python, seconds)) for _ in range(min(jobs, count))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, todo: "queue.Queue[Row]", count: int, python: str, seconds: int) -> None:
        worker = subprocess.Popen([python, str(RECORDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert worker.stdin and worker.stdout
        while True:
            try:
                row = todo.get_nowait()
            except queue.Empty:
                break
            began = time.monotonic()
            worker.stdin.write(json.dumps(self._job(row, seconds)) + "\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            failed = json.loads(line)["failed"] if line else "the recorder ended"
            if failed:
                self._failure(row).write_text(failed + "\n")
            print(f"{count - todo.qsize()}/{count} {row.key} {time.monotonic() - began:.1f} s {failed or ''}", file=sys.stderr, flush=True)
            if not line:
                break
        worker.stdin.close()
        worker.wait()

    def _job(self, row: Row, seconds: int) -> Dict[str, Any]:
        return {"kind": "train" if row.train else "infer", "form": row.form, "model": row.model, "size": row.size, "path": str(self.path(row)),
                "seconds": seconds}
