"""Ray Data integration: debates and judgments as stages of a pipeline."""
