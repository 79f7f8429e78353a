"""The sources of events: addresses, file formats, and the log of a watched directory.

address          addresses such as `json:DIR`, of sources and sinks
directory_watch  finds new files; files: the log of those that were found
record_log       a small durable log, one record a line
formats          cuts a file into splits and reads them; named_format: the format of a name
line_blocks      the lines of a file, a block at a time
whole_files      files that cannot be cut
json_lines       JSON lines; picked: only the needed fields; json_arrays: files that are an array
text_lines, csv_files, parquet_files; arrow_rows: rows of Arrow as records
kafka_records    records of a topic
"""
