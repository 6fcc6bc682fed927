"""Encoders: sentences in, unit vectors out; batched across the debates of a process."""
