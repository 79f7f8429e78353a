"""Actions: what an application does outside, after its batch is committed.

An action is an output stream whose events are carried out as well as logged. A function requests an
action by emitting to its stream. The queue is the event log in the store, which gets each event
exactly once and only after the commit. So nothing is ever carried out for a batch that was not
committed, and batches do not wait for the receiver.

    address         parses an action's address: webhook:URL, line:FILE, stderr
    action_events   one event to carry out: its id, its content
    attempt         decides after a try: done, retry later, or a dead letter. Pure
    webhook         carries out events by HTTP
    lines           carries out events by writing lines to a file or to standard error
    record          an action's position on disk, and the request to retry dead letters
    place_records   the same in the place of a shared store
    letters         an action's dead letters: the log NAME.failed
    retry           puts dead letters back, for the command and the server
    worker          one action, step by step: read, carry out, record
    action_threads  the actions of a run, each in its own thread
    overview        the state of all actions of a store, from its files
"""
