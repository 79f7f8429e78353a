"""Finds the format of files by its name."""

from __future__ import annotations

from millstream.errors import InputError
from millstream.model.text_form import PLAIN_TEXT, TextForm
from millstream.sources.address import FORMATS, LOG, SERVICES, SQLITE
from millstream.sources.formats import Format


def format_named(name: str, form: TextForm = PLAIN_TEXT) -> Format:
    """Returns the format of that name; `form` is the layout of its text, if it is text.

    The libraries of a format are imported only when it is requested.
    """
    match FORMATS.get(name):
        case "json":
            from millstream.sources.json_lines import JsonLines

            return JsonLines()
        case "csv":
            from millstream.sources.csv_files import CsvFiles

            return CsvFiles(form)
        case "text":
            from millstream.sources.text_lines import TextLines

            return TextLines(form)
        case "parquet":
            from millstream.sources.parquet_files import ParquetFiles

            return ParquetFiles()
    files = sorted(set(FORMATS) - {LOG, SQLITE, *SERVICES})
    raise InputError(f"a file's format must be one of {', '.join(files)}; got {name!r}")
