"""Text tools: sentences, chunks, Unicode form, repetition; no model is asked."""
