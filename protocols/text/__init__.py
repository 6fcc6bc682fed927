"""Text tools: labels, sentences, chunks, Unicode form, repetition; no model is asked."""
