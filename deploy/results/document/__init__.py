"""A debate on a subject as a document for whoever has to decide."""
