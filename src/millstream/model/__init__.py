"""The definition of an application as inert data: events, streams, functions, slates, the graph.

What users write, from the smallest part to the whole:

event           events, and what a function may yield; rules: the rules for that
function        maps and updates; batch_update: updates over many events at once
slate           a dict, a dataclass or a table; algebra: slates that events build in any order
migration       versions of slates
lookup          tables of other systems that a map reads
stream          what is declared of a stream, and how much later than its input an event is
late_notice     notices of late events, for functions that count them
workflow        the checked graph; closing_order: the order in which it ends (`--final`)
app             the builder that users see; handles: what its decorators return

How records become events:

source          an event's key and time, from a record
path            a field of a record, named by a dotted path; conditions on fields
line_records    records from lines of text; text_form: encoding, pattern and delimiter of text
letter_records  how a dead letter holds a record that became no event
time_text       times that are text; time_jumps: wrong times in a file

Used by all of these:

duration, size  durations and sizes as users write them
place           the line of a user's code, for errors
"""
