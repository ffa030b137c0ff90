"""The comparison of lock libraries: `compare` beside this folder is its command line."""
