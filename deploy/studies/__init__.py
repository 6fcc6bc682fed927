"""Studies over runs: ablation, planning, training of classifiers."""
