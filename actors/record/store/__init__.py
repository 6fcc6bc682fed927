"""Records in a bucket: what is written to a local folder is also put to a filesystem of pyarrow's."""
