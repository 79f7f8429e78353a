"""Places: the object storage of a shared store, behind one interface for all services.

place             the five operations, checksums, and creating an object exactly once
memory_place      in the memory of one process, for tests
directory_place   a directory that all hosts see
object_storage    S3, Google Cloud Storage, Azure, by obstore; storage_failure: its errors
piece_log         a log of bytes in pieces, which any number of hosts append to
piece_chain       the objects that make up such a log: pure, from a listing
elapsed           elapsed time that counts while the machine sleeps
place_address     finds the place that an address names
host_cache        the folders of a host for what it can fetch again
"""
