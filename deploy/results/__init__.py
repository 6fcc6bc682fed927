"""Reading a record: runs, debates and the numbers of their rounds, shown as text, Markdown or JSON."""
