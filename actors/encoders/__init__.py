"""Encoders: sentences to unit vectors, batched across the debates of a process."""
