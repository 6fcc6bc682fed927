"""Constructor and auditor: an opening, a challenge, a synthesis, and judges of the reasoning of the first two."""
