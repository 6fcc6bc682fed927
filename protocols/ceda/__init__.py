"""CEDA: classifies claims as supported or hallucinated by evidence of texts and pictures, a debate, and judges."""
