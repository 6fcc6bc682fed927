"""Studies over runs: ablation, planning and classifier training."""
