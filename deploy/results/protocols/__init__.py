"""What results show of one protocol alone, a file for each protocol."""
