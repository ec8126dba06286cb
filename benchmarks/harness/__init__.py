"""What runs, measures and compares: cases, drivers' contract, worker processes, ratios, bars, tables."""
