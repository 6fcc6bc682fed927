"""Reading a record: summaries, transcripts, comparisons."""
