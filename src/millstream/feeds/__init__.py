"""Feeds of followed producers, complete and gapless, by the push and pull of Feeding Frenzy.

app = ms.App("social")
app.add(ms.feeds.Feeds(), name="feeds")

feeds, options    the component that users add, and its settings
placement         adds its functions to an application
records           the records that feeds accept; states: what a record changes
messages          what the functions send each other
stored_rows       the entries of the tables; names: the names of entries

`updates/`: producers, consumers, aggregated_producers, and fanouts, which are under way. `policy/`:
sides decides push or pull, by rates and costs, for a target of latency. `checks/`: feed_check
verifies a feed, table_checks the tables, and differences are what they find. `reads/`:

query             the tables and the pending_records that a request needs
candidates        stored posts, of which visible_rows may be shown; references resolves those that
                  stand for a post of another producer
stream_merge      global coherency: the first posts of several streams; diversity: per-producer
answers           a page, with the count of unread items and a cursor
"""

from millstream.feeds.feeds import Feeds

__all__ = ["Feeds"]
