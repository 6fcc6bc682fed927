"""Records in a bucket: files of a local folder are also put to a filesystem of pyarrow."""
