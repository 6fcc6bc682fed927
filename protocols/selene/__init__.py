"""SELENE: selective debate and evidence-weighted judging, and the baselines made of the same parts."""
