"""The report of one run or more: one model of blocks, charts, cases and transcripts for every form of output."""
