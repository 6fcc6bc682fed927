"""The record of a run: an append-only journal while it runs, Parquet tables when it is done."""
