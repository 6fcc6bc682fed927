"""Documents of a user's: text, Markdown, HTML and PDF files read, cut into chunks and made searchable."""
