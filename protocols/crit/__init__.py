"""CRIT, the Critical Reading Inquisitive Template: how well a document's reasons support its claim."""
