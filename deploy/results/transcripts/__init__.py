"""One debate, from opening to verdict, as text, Markdown or data."""
