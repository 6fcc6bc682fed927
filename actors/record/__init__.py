"""Record of a run: an append-only journal during the run, Parquet tables when it is done."""
