"""CEDA: is a claim supported or hallucinated? Evidence of texts and pictures, a debate, judges, a classifier."""
