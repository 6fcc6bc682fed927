"""What writes the generated pages of the reference."""
