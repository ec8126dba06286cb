"""A worker process: `python benchmarks/worker.py MODULE`, the module that defines the driver. See harness.serving."""

from __future__ import annotations

import sys

from harness.serving import load_driver, serve

if __name__ == "__main__":
    serve(load_driver(sys.argv[1]))
