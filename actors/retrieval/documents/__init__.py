"""Document ingestion: text, Markdown, HTML and PDF files are parsed, chunked and indexed."""
