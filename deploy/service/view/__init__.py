"""Pages over runs, for a browser on this machine: the list of a folder's runs, their reports, and runs in progress."""
