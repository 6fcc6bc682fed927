"""A record in a bucket: what is written into a local folder is put to a filesystem that pyarrow reaches, too."""
