"""Actions: what an application does outside, after its batch is committed.

An action is an output stream whose events are carried out besides being logged. Functions ask by
emitting to it; the event log in the store, which gets each event exactly once and only after the
commit, is the queue. So nothing is ever done for a try that was not committed, and batches do not
wait for the outside.

address     what an action's address means: webhook:URL, line:FILE, stderr
asked       one thing to carry out: its id, its content
attempt     what follows from a try: done, again in a while, or a dead letter. Pure
webhook     carrying out by HTTP
lines       carrying out into a file, or onto standard error
record      how far an action is, on disk; and the request to try dead letters again
letters     an action's dead letters: the log NAME.failed
worker      one action, step by step: read, carry out, record
running     the actions of a run, each in a thread of its own
overview    how all actions of a store are, for whoever asks
"""
